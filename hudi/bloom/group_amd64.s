#include "textflag.h"

// Y0 to Y3 hold the hashes of 32 keys; Y4 murmurM, Y5 the length of the keys, Y6 the inverse, Y7 the size, X8 the shift.

#define FINISH(h) \
	VPSRLD  $13, h, Y9 \
	VPXOR   Y9, h, h   \
	VPMULLD Y4, h, h   \
	VPSRLD  $15, h, Y9 \
	VPXOR   Y9, h, h

// PLACE stores |h| - size * (|h| * inverse >> shift): the product of each second lane has 64 bits.
#define PLACE(h, at) \
	VPABSD   h, Y9            \
	VPMULUDQ Y6, Y9, Y10      \
	VPSRLQ   $32, Y9, Y11     \
	VPMULUDQ Y6, Y11, Y11     \
	VPSRLQ   X8, Y10, Y10     \
	VPSRLQ   X8, Y11, Y11     \
	VPSLLQ   $32, Y11, Y11    \
	VPOR     Y11, Y10, Y10    \
	VPMULLD  Y7, Y10, Y10     \
	VPSUBD   Y10, Y9, Y9      \
	VMOVDQU  Y9, at(DI)

// func placesAVX2(places *[lanes]uint32, hashes int, words *[lanes]uint32, n int, tails *[lanes]uint32, length, size, inverse, shift uint32)
TEXT ·placesAVX2(SB), NOSPLIT, $0-56
	MOVQ         places+0(FP), DI
	MOVQ         hashes+8(FP), BX
	MOVQ         words+16(FP), R8
	MOVQ         n+24(FP), R9
	MOVQ         tails+32(FP), DX
	MOVL         length+40(FP), AX
	VMOVQ        AX, X5
	VPBROADCASTD X5, Y5
	MOVL         size+44(FP), AX
	VMOVQ        AX, X7
	VPBROADCASTD X7, Y7
	MOVL         inverse+48(FP), AX
	VMOVQ        AX, X6
	VPBROADCASTD X6, Y6
	MOVL         shift+52(FP), AX
	VMOVQ        AX, X8
	MOVL         $0x5bd1e995, AX
	VMOVQ        AX, X4
	VPBROADCASTD X4, Y4
	VPXOR        Y0, Y0, Y0
	VPXOR        Y1, Y1, Y1
	VPXOR        Y2, Y2, Y2
	VPXOR        Y3, Y3, Y3

hash:
	TESTQ BX, BX
	JZ    done
	VPXOR Y5, Y0, Y0
	VPXOR Y5, Y1, Y1
	VPXOR Y5, Y2, Y2
	VPXOR Y5, Y3, Y3
	MOVQ  R8, SI
	MOVQ  R9, CX

word:
	TESTQ   CX, CX
	JZ      tail
	VPMULLD Y4, Y0, Y0
	VPMULLD Y4, Y1, Y1
	VPMULLD Y4, Y2, Y2
	VPMULLD Y4, Y3, Y3
	VPXOR   0(SI), Y0, Y0
	VPXOR   32(SI), Y1, Y1
	VPXOR   64(SI), Y2, Y2
	VPXOR   96(SI), Y3, Y3
	ADDQ    $128, SI
	DECQ    CX
	JMP     word

tail:
	TESTQ   DX, DX
	JZ      end
	VPXOR   0(DX), Y0, Y0
	VPXOR   32(DX), Y1, Y1
	VPXOR   64(DX), Y2, Y2
	VPXOR   96(DX), Y3, Y3
	VPMULLD Y4, Y0, Y0
	VPMULLD Y4, Y1, Y1
	VPMULLD Y4, Y2, Y2
	VPMULLD Y4, Y3, Y3

end:
	FINISH(Y0)
	FINISH(Y1)
	FINISH(Y2)
	FINISH(Y3)
	PLACE(Y0, 0)
	PLACE(Y1, 32)
	PLACE(Y2, 64)
	PLACE(Y3, 96)
	ADDQ $128, DI
	DECQ BX
	JMP  hash

done:
	VZEROUPPER
	RET
