package app

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestLastLinesAreBounded(t *testing.T) {
	t.Parallel()
	var l lastLines
	if got := l.lines(); len(got) != 0 {
		t.Errorf("nothing was written, and kept is %q", got)
	}
	for i := range 3 * maxLastLines {
		l.add(fmt.Sprint(i))
	}
	l.add(strings.Repeat("é", maxLastLine))
	got := l.lines()
	if len(got) != maxLastLines || got[0] != fmt.Sprint(2*maxLastLines+1) {
		t.Errorf("%d lines from %q on", len(got), got[0])
	}
	if last := got[len(got)-1]; len(last) > maxLastLine+10 || !strings.HasSuffix(last, " ...") || !utf8.ValidString(last) {
		t.Errorf("the long line has %d bytes", len(last))
	}
}
