//go:build interop

package streamer

import (
	"os"
	"os/exec"
	"testing"
)

// The long form of cmd/sluice's TestStreamerKilled: 200 times killed while files arrive.
func TestKilledTwoHundredTimes(t *testing.T) {
	cmd := exec.Command("go", "test", "-count=1", "-v", "-timeout", "30m", "-run", "TestStreamerKilled", "github.com/sluicelake/sluice/cmd/sluice")
	cmd.Env = append(os.Environ(), "SLUICE_KILL_ROUNDS=200")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}
