//go:build race

// Package racing tells tests whether the race detector is on. It makes everything several times slower and larger, so tests that
// go through many points take a sample of them then; without it they take all.
package racing

// On: the race detector is on.
const On = true

// Step is the distance between points that are taken: odd, so that points which alternate are both among them.
const Step = 5
