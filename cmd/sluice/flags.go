package main

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// noWords refuses stray words in the text of the Java tools.
func noWords(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("Was passed main parameter '%s' but no main parameter was defined in your arg class", args[0])
	}
	return nil
}

// alias makes one flag name mean another.
func alias(from, to string) func(*pflag.FlagSet, string) pflag.NormalizedName {
	return func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == from {
			name = to
		}
		return pflag.NormalizedName(name)
	}
}
