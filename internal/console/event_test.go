package console

import (
	"regexp"
	"strings"
	"testing"
)

func readEvents(stream string) (events []string) {
	var data []string
	for _, line := range regexp.MustCompile("\r\n|\r|\n").Split(stream, -1) {
		if text, ok := strings.CutPrefix(line, "data:"); ok {
			data = append(data, strings.TrimPrefix(text, " "))
		} else if line == "" && data != nil {
			events, data = append(events, strings.Join(data, "\n")), nil
		}
	}
	return events
}

func TestATextNeverEndsItsEvent(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"plain": "plain", "": "", "a\nb": "a\nb", "a\r\nb": "a\nb", "a\rb": "a\nb", "a\n": "a\n", "\r": "\n",
		"hello\r\rdata: forged\r\revent: x\r": "hello\n\ndata: forged\n\nevent: x\n",
		"a\n\n\nid: 7\n":                      "a\n\n\nid: 7\n", "a\r\r\nb": "a\n\nb", " a": " a",
	} {
		stream := string(AppendEvent(AppendEvent(nil, 1, []byte(text)), 2, []byte("next")))
		if events := readEvents(stream); len(events) != 2 || events[0] != want || events[1] != "next" {
			t.Errorf("%q became %q", text, events)
		}
	}
}
