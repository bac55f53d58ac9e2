package telemetry

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

const (
	docsPath  = "../../../docs/metrics.md"
	docsBegin = "<!-- the table: generated, write it anew with: go test ./internal/observe/telemetry -update -->\n"
	docsEnd   = "<!-- end of the table -->\n"
)

func TestDocumentationListsEveryMetric(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(docsPath)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(page), docsBegin)
	_, after, ok2 := strings.Cut(rest, docsEnd)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the table", docsPath)
	}
	var b strings.Builder
	b.WriteString("| metric | kind | labels | meaning |\n| --- | --- | --- | --- |\n")
	for _, m := range allMetrics() {
		labels := "`" + strings.Join(m.labels, "`, `") + "`"
		if len(m.labels) == 0 {
			labels = ""
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", m.name, m.kind, labels, m.help)
	}
	compareGolden(t, docsPath, before+docsBegin+b.String()+docsEnd+after)
}
