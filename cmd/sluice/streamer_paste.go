package main

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// The flags of spark-submit that take a value, and those that take none.
func sparkFlags() (valued, bare []string) {
	return strings.Fields(`--class --master --deploy-mode --conf -c --name --jars --packages --exclude-packages --repositories --py-files --files --archives
		--properties-file --driver-memory --driver-java-options --driver-library-path --driver-class-path --driver-cores --executor-memory --executor-cores
		--num-executors --total-executor-cores --queue --principal --keytab --proxy-user --remote`), strings.Fields(`--verbose -v --supervise`)
}

// cutSpark takes what a person pasted in front of the streamer's own flags away: spark-submit and what starts it, its flags, and the
// jar. It gives
// the class that --class names.
func cutSpark(args []string) (rest []string, class string, err error) {
	valued, bare := sparkFlags()
	i := submit(args)
	for i < len(args) {
		name, value, joined := strings.Cut(args[i], "=")
		switch {
		case slices.Contains(bare, args[i]):
			i++
			continue
		case slices.Contains(valued, args[i]) && i+1 < len(args):
			value = args[i+1]
			i += 2
		case joined && slices.Contains(valued, name):
			i++
		default:
			return args[i+jar(args[i:], i > 0):], class, streamerClass(class)
		}
		if name == "--class" {
			class = value
		}
	}
	return nil, class, streamerClass(class)
}

// submit is how many words a line has up to spark-submit. What starts it may stand in front: assignments of the shell, sudo, nohup,
// command-runner.jar.
func submit(args []string) int {
	for i, a := range args {
		switch {
		case strings.HasSuffix(strings.TrimSuffix(path.Base(a), ".cmd"), "submit"):
			return i + 1
		case strings.HasPrefix(a, "--"):
			return 0
		}
	}
	return 0
}

// jar is 1 where an application's file comes first. Behind flags of spark-submit whatever is no flag is one.
func jar(args []string, behindFlags bool) int {
	if len(args) == 0 || strings.HasPrefix(args[0], "-") || !behindFlags && !strings.HasSuffix(args[0], ".jar") {
		return 0
	}
	return 1
}

// multiClass reports whether a class of the original is the streamer of several tables.
func multiClass(class string) bool { return strings.Contains(class, ".HoodieMultiTable") }

// streamerClass refuses a line that runs something else.
func streamerClass(class string) error {
	name := class[strings.LastIndexByte(class, '.')+1:]
	switch name {
	case "", "HoodieStreamer", "HoodieDeltaStreamer", "HoodieMultiTableStreamer", "HoodieMultiTableDeltaStreamer":
		return nil
	case "HoodieSnapshotExporter":
		return usageError{fmt.Errorf("this line runs %s: paste it behind \"sluice export\"", name)}
	case "HoodieSnapshotCopier":
		return usageError{fmt.Errorf("this line runs %s: paste it behind \"sluice copy\"", name)}
	}
	return usageError{fmt.Errorf("this line runs %s, not HoodieStreamer", class)}
}
