package spark

import (
	"slices"
	"strings"
)

// What of this program's environment executors get: how to reach storage, and nothing else.
var (
	passedNames = []string{
		"GOOGLE_APPLICATION_CREDENTIALS", "STORAGE_EMULATOR_HOST", "GCE_METADATA_HOST",
		"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
		"TZ",
	}
	passedPrefixes = []string{"AWS_", "AZURE_", "GOOGLE_CLOUD_", "SLUICE_"}
)

// Passed gives the names of those variables, of an environment as os.Environ has it, that workers on executors find in
// theirs: AWS_*, AZURE_*, GOOGLE_*, STORAGE_EMULATOR_HOST, SLUICE_*, proxies and TZ. The values are never
// part of a command line: the driver takes them from its own environment and hands them to Spark as spark.executorEnv.*.
func Passed(environ []string) []string {
	var out []string
	for _, entry := range environ {
		name, _, ok := strings.Cut(entry, "=")
		has := func(prefix string) bool { return strings.HasPrefix(name, prefix) }
		if ok && (slices.Contains(passedNames, name) || slices.ContainsFunc(passedPrefixes, has)) && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}
