package operation

import "github.com/sluicelake/sluice/hudi/write"

// Event is something that a person may want to see while a write runs: a Protocol, a Planned, a Progress or a Warned.
type Event interface{ event() }

// Protocol is a step of the transaction.
type Protocol struct{ write.Event }

// Planned is sent once, when it is known which files will be written.
type Planned struct {
	Instant string
	Inserts int64 // rows
	Updates int64 // rows, those to delete among them
	Creates int   // new file groups; those of a bulk insert are not known before
	Updated int   // file groups that are rewritten
}

// Warned is what a person should know, said once.
type Warned struct{ Text string }

// Progress tells what was done since the last one.
type Progress struct {
	Read    int64 // rows that came
	Written int64 // rows in files that are done
	Files   int
	Bytes   int64
}

func (Protocol) event() {}
func (Planned) event()  {}
func (Progress) event() {}
func (Warned) event()   {}
