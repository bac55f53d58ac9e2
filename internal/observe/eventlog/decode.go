package eventlog

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
)

const (
	maxLine = 64 << 10 // longer than any event
	maxID   = 1 << 53  // every JSON parser represents it exactly
)

// A crash or power failure can leave malformed lines behind, which are skipped. more is false once take returned
// false.
func decode(r io.Reader, take func(Event) bool) (more bool, err error) {
	lines := bufio.NewReaderSize(r, maxLine)
	for whole := true; ; {
		line, err := lines.ReadSlice('\n')
		if tooLong := errors.Is(err, bufio.ErrBufferFull); tooLong || !whole {
			whole = !tooLong // skip the rest of a line that is too long
			if err == nil || tooLong {
				continue
			}
		}
		var e Event
		if len(line) > 1 && json.Unmarshal(line, &e) == nil && e.ID > 0 && e.ID < maxID && e.Kind != "" && !take(e) {
			return false, nil
		}
		if errors.Is(err, io.EOF) {
			return true, nil
		}
		if err != nil {
			return false, err
		}
	}
}
