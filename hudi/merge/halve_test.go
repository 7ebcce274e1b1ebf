package merge

import (
	"fmt"
	"testing"

	"github.com/sluicelake/sluice/internal/gather"
)

// Halves of an assembly that is too big for one batch hold the same rows.
func TestHalve(t *testing.T) {
	a := &assembly{}
	a.stretch(0, 3, 5)
	a.composed([]source{{1, 2}})
	a.stretch(0, 20, 4)
	flat := func(a *assembly) (out []string) {
		for k, r := range a.runs {
			for i := range r.N {
				out = append(out, fmt.Sprint(r.Src, r.Row+i, a.at[k]))
			}
		}
		return out
	}
	lo, hi := a.halve()
	if got := append(flat(lo), flat(hi)...); fmt.Sprint(got) != fmt.Sprint(flat(a)) || gather.Total(lo.runs) != 5 {
		t.Errorf("%v and %v of %v", flat(lo), flat(hi), flat(a))
	}
	for hi != nil {
		a = hi
		_, hi = a.halve()
	}
	if gather.Total(a.runs) != 1 {
		t.Errorf("%d rows at the end", gather.Total(a.runs))
	}
}
