package environment

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestGoroutinesAreGroupedByTheirStacks(t *testing.T) {
	t.Parallel()
	const stacks = `goroutine 1 [running]:
main.main()
	/src/main.go:3 +0x1d

goroutine 7 [chan receive, 12 minutes]:
tendril/worker.(*Worker).poll(0xc000012345, {0x1, 0x2})
	/src/worker.go:10 +0x5
created by tendril/worker.Run in goroutine 1
	/src/worker.go:4 +0x9

goroutine 8 [chan receive]:
tendril/worker.(*Worker).poll(0xc000054321, {0x3, 0x4})
	/src/worker.go:10 +0x5
created by tendril/worker.Run in goroutine 7
	/src/worker.go:4 +0x9

goroutine 9 [chan receive (synctest)]:
main.wait(...)
	/src/main.go:9
`
	want := []stackGroup{
		{"chan receive", "tendril/worker.(*Worker).poll < created by tendril/worker.Run", 2},
		{"running", "main.main", 1},
		{"chan receive (synctest)", "main.wait", 1},
	}
	if diff := cmp.Diff(want, groupStacks(stacks), cmp.AllowUnexported(stackGroup{})); diff != "" {
		t.Error(diff)
	}
	if got := groupStacks(readStacks()); len(got) == 0 || !strings.Contains(fmt.Sprint(got), "readStacks") {
		t.Errorf("the goroutines of this process: %+v", got)
	}
}

func TestLinesAboutGoroutinesAreBounded(t *testing.T) {
	t.Parallel()
	var stacks strings.Builder
	for i := range maxStackGroups + 5 {
		fmt.Fprintf(&stacks, "goroutine %d [select]:\nf%d()\n\t/src/f.go:1\n\n", i, i)
	}
	stacks.WriteString("goroutine 9999 [select]:\n" + strings.Repeat("g(0x1)\n\t/src/g.go:1\n", 1000))
	var out bytes.Buffer
	logGoroutines(slog.New(slog.NewTextHandler(&out, nil)), stacks.String())
	if lines := strings.Count(out.String(), "\n"); lines != maxStackGroups+1 ||
		!strings.HasSuffix(out.String(), "msg=\"goroutines omitted\" groups=6\n") || out.Len() > 1<<20 {
		t.Errorf("%d lines, %d bytes", lines, out.Len())
	}
}
