package cli

import (
	"runtime"
	"testing"
	"weak"

	"tendril/internal/cli/base"
)

func TestUnusedCommandsAreCollected(t *testing.T) {
	t.Parallel()
	root := weak.Make(NewRoot(&base.CLI{}))
	for range 10 {
		runtime.GC()
		if root.Value() == nil {
			return
		}
	}
	t.Error("something global refers to the commands")
}
