package streamer

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/sluicelake/sluice/hudi/write/lock"
)

const keyIdleRounds = "max.rounds.without.new.data.to.shutdown"

// idlePause is the least time between rounds that find nothing.
const idlePause = time.Second

// Run does what the configuration says: one round, rounds for ever, or several tables. A continuous run ends when stop is closed,
// after the round that is going on; one that ctx ends is cut off, and the table is as the last commit left it.
func Run(ctx context.Context, c Config, stop <-chan struct{}) (Summary, error) {
	begun := time.Now()
	var sum Summary
	var err error
	if c.MultiTable {
		sum, err = runTables(ctx, c, stop)
	} else {
		sum, err = runTable(ctx, c, stop)
	}
	sum.Took = time.Since(begun)
	return sum, err
}

func runTable(ctx context.Context, c Config, stop <-chan struct{}) (Summary, error) {
	s, err := New(ctx, c)
	if err != nil {
		return Summary{}, err
	}
	return s.run(ctx, stop)
}

func (s *Streamer) run(ctx context.Context, stop <-chan struct{}) (Summary, error) {
	var sum Summary
	if !s.Continuous {
		r, err := s.Round(ctx)
		if err == nil {
			sum.add(r)
		}
		return sum, err
	}
	idle, limit := 0, s.idleLimit()
	for {
		begun := time.Now()
		r, err := s.Round(ctx)
		if (errors.Is(err, lock.ErrHeld) || errors.Is(err, lock.ErrLost)) && ctx.Err() == nil { // another writer is at work, or died a moment ago
			s.note("%v; trying again", err)
			err = nil
		}
		if err != nil {
			return sum, err
		}
		sum.add(r)
		if r.Instant != "" {
			idle = 0
		} else if idle++; limit > 0 && idle >= limit {
			sum.Stopped = fmt.Sprintf("%d rounds without new data", idle)
			return sum, nil
		}
		pause := s.MinSyncInterval
		if r.Instant == "" {
			pause = max(pause, idlePause)
		}
		if !wait(ctx, stop, time.Until(begun.Add(pause))) {
			sum.Stopped = "asked to stop"
			return sum, context.Cause(ctx)
		}
	}
}

// wait pauses; false: it is time to stop.
func wait(ctx context.Context, stop <-chan struct{}, d time.Duration) bool {
	select { // a stop that came during the round counts even where there is no pause
	case <-stop:
		return false
	case <-ctx.Done():
		return false
	default:
	}
	if d <= 0 {
		return true
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-stop:
		return false
	case <-ctx.Done():
		return false
	}
}

// checkTermination knows the one strategy of the original.
func (s *Streamer) checkTermination() error {
	switch class := lastPart(s.Termination); class {
	case "", "NoNewDataTerminationStrategy":
	default:
		return configf("--post-write-termination-strategy-class %s: only NoNewDataTerminationStrategy is there", s.Termination)
	}
	if v := s.props.text(keyIdleRounds); v != "" {
		if n, err := strconv.Atoi(v); err != nil || n < 1 {
			return configf("%s=%s: a number from 1 on was expected", keyIdleRounds, v)
		}
	}
	return nil
}

// idleLimit is after how many rounds without new data a continuous run ends; 0: never.
func (s *Streamer) idleLimit() int {
	if s.Termination == "" {
		return 0
	}
	n, err := strconv.Atoi(s.props.text(keyIdleRounds))
	if err != nil {
		return 3
	}
	return n
}

// errTables is the error of a multi-table run of which some tables failed.
var errTables = errors.New("tables failed")
