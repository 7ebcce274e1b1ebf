package export

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/sluicelake/sluice/storage"
	"github.com/sluicelake/sluice/storage/open"
)

// checkTarget is check 3: the target must not exist, empty folders included, but for what an export of the same arguments
// left unfinished.
func (j *job) checkTarget(ctx context.Context) (err error) {
	if j.source, err = j.cfg.Open(ctx, j.cfg.Source); err != nil {
		return err
	}
	j.source = j.remote.record(j.source)
	j.arguments = j.cfg.arguments(j.source.URL())
	up, base, err := open.Split(j.cfg.Target)
	if err != nil {
		return err
	}
	if j.parent, err = j.cfg.Open(ctx, up); err != nil {
		return err
	}
	j.base = base
	var f found
	switch info, err := j.parent.Stat(ctx, base); {
	case err == nil && !info.Dir:
		return &targetError{j.cfg.Target, "it is a file; choose a folder that does not exist"}
	case err == nil:
		f.exists = true // be it empty
	case !errors.Is(err, storage.ErrNotExist):
		return err
	}
	if j.target, err = j.cfg.Open(ctx, j.cfg.Target); err != nil {
		return err
	}
	if err := f.look(ctx, j.target); err != nil {
		return err
	}
	return j.decide(f)
}

// found is what is in the target.
type found struct {
	exists  bool // something, be it an empty folder
	success bool // _SUCCESS
	state   bool // the folder of a run that did not finish
	others  bool // anything else
	plan    *plan
	dirty   bool // the plan replaces what was there, and that is not gone yet
}

func (f *found) look(ctx context.Context, target storage.Store) (err error) {
	for info, err := range target.List(ctx, "", storage.ListOptions{}) {
		if err != nil {
			return err
		}
		f.exists = true
		switch info.Name {
		case Successful:
			f.success = true
		case state:
			f.state = true
		default:
			f.others = true
		}
	}
	if !f.state {
		return nil
	}
	if f.plan, err = readPlan(ctx, target); err != nil || f.plan == nil || !f.plan.Replaces {
		return err
	}
	_, err = target.Stat(ctx, clearedName)
	f.dirty = errors.Is(err, storage.ErrNotExist)
	if f.dirty {
		return nil
	}
	return err
}

// decide says what becomes of what is in the target.
func (j *job) decide(f found) error {
	same := f.plan != nil && f.plan.Version == planVersion && differences(f.plan.Arguments, j.arguments) == ""
	switch {
	case !f.exists:
		return nil
	case same && f.success && !f.dirty && !j.cfg.Overwrite:
		j.plan, j.complete = f.plan, true
		return nil
	case same && (!f.success || f.dirty):
		j.plan, j.resumed = f.plan, true
		return nil
	case j.cfg.Overwrite && (f.success || f.state || j.cfg.Copier):
		j.replaces = true
		return nil
	case j.cfg.Overwrite:
		return &targetError{j.cfg.Target, "it holds no " + Successful + ", so it is no export of ours and --overwrite does not touch it; remove it by hand"}
	case f.plan != nil && !f.success:
		why := differences(f.plan.Arguments, j.arguments)
		if why == "" {
			why = "it was begun by another version of the program"
		}
		return &targetError{j.cfg.Target, "an earlier export to it did not finish, and had other arguments (" + why + "); give those to finish it, or --overwrite to begin anew"}
	case f.state && !f.success && !f.others: // it died before it had begun
		return nil
	}
	return &targetError{j.cfg.Target, "choose another folder, or give --overwrite to replace an earlier export"}
}

// targetError is the original's refusal with a next step.
type targetError struct{ target, next string }

func (e *targetError) Error() string    { return ErrTargetExists.Error() + " (" + e.target + ")" }
func (e *targetError) Unwrap() error    { return ErrTargetExists }
func (e *targetError) NextStep() string { return e.next }

// busyError says that somebody else works in the target.
type busyError struct {
	target string
	err    error
}

func (e *busyError) Error() string { return fmt.Sprintf("%v (%s)", e.err, e.target) }
func (e *busyError) Unwrap() error { return e.err }
func (e *busyError) NextStep() string {
	return "wait until it has ended, or choose another folder"
}

func (j *job) busy(err error) error {
	if errors.Is(err, ErrBusy) {
		return &busyError{j.cfg.Target, err}
	}
	return err
}

// checkEarlier compares what an earlier run planned with what its instant gives now.
func (j *job) checkEarlier() error {
	now := digest(j.tasks)
	if !j.resumed || j.plan.Digest == now && j.plan.Instant == j.snap.Instant() {
		j.plan.Digest = now
		return nil
	}
	if j.cfg.Overwrite {
		fresh := *j.plan
		fresh.Digest, fresh.Instant, fresh.End, fresh.Token = now, j.snap.Instant(), j.end, uuid.NewString()
		j.plan, j.resumed, j.replaces = &fresh, false, true
		return nil
	}
	return &targetError{j.cfg.Target, fmt.Sprintf("an earlier export of instant %s to it did not finish, and the table has not the same files for that instant any more; "+
		"give --overwrite to begin anew", j.plan.Instant)}
}

// begin makes the target ours: what it held goes, and the plan comes.
func (j *job) begin(ctx context.Context, l *lease) error {
	// Between the look at the target and the lease another run may have been here.
	var f found
	if err := f.look(ctx, j.target); err != nil {
		return err
	}
	switch {
	case j.resumed && (f.plan == nil || f.plan.Token != j.plan.Token || f.success && !f.dirty),
		!j.resumed && !j.replaces && (f.success || f.others || f.plan != nil):
		return j.busy(fmt.Errorf("%w: it came first", ErrBusy))
	case !j.resumed:
		if j.plan.Replaces = j.replaces; j.replaces {
			if err := j.target.Delete(ctx, clearedName); err != nil {
				return err
			}
		}
		if err := j.plan.write(ctx, j.target); err != nil {
			return err
		}
		f.dirty = j.replaces
	}
	if !f.dirty {
		return nil
	}
	if err := j.clear(ctx, l); err != nil {
		return err
	}
	return putBytes(ctx, j.target, clearedName, nil)
}

// clear removes what the target held before: first what says that it is whole.
func (j *job) clear(ctx context.Context, l *lease) error {
	if err := j.cleanStaging(ctx); err != nil {
		return err
	}
	if err := j.target.Delete(ctx, Successful); err != nil {
		return err
	}
	for info, err := range j.target.List(ctx, "", storage.ListOptions{}) {
		if err != nil {
			return err
		}
		if info.Name == state {
			continue
		}
		if info.Dir {
			err = storage.RemoveAll(ctx, j.target, info.Name)
		} else {
			err = j.target.Delete(ctx, info.Name)
		}
		if err != nil {
			return err
		}
	}
	return j.clearStateBut(ctx, l.name, planName)
}

// clearStateBut empties the state but for some objects.
func (j *job) clearStateBut(ctx context.Context, keep ...string) error {
	for info, err := range j.target.List(ctx, state, storage.ListOptions{Recursive: true}) {
		if err != nil {
			return err
		}
		if slices.Contains(keep, info.Name) {
			continue
		}
		if err := j.target.Delete(ctx, info.Name); err != nil {
			return err
		}
	}
	return nil
}

// clearState removes the state of a finished export: the plan last, so that a run that dies over it can be told from one that
// did not finish.
func (j *job) clearState(ctx context.Context) error {
	if err := j.clearStateBut(ctx, planName); err != nil {
		return err
	}
	if err := j.target.Delete(ctx, planName); err != nil {
		return err
	}
	if !j.target.Traits().Dirs {
		return nil
	}
	return storage.RemoveAll(ctx, j.target, state)
}

// undo removes what a failed run wrote: the target did not exist before it, or was ours to replace.
func (j *job) undo(ctx context.Context) error {
	err := errors.Join(j.remote.withdraw(ctx), storage.RemoveAll(ctx, j.target, ""))
	if err == nil && j.parent.Traits().Dirs {
		err = j.parent.Delete(ctx, j.base)
	}
	if err != nil {
		return fmt.Errorf("and what was written to %s could not be removed: %w", j.cfg.Target, err)
	}
	return nil
}

// cleanStaging removes what killed processes left of files that they had begun, where the store keeps such: a file system.
// Nobody else writes, as we hold the lease.
func (j *job) cleanStaging(ctx context.Context) error {
	s, ok := j.target.(interface {
		CleanStaging(ctx context.Context, prefix string, age time.Duration) (int, error)
	})
	if !ok {
		return nil
	}
	_, err := s.CleanStaging(ctx, "", 0)
	return err
}

// ours tells the files of this export from what others may have put into the target.
func (j *job) ours(name string) bool {
	return j.cfg.Format == Hudi || strings.Contains(name, j.plan.Token[:tokenStem])
}
