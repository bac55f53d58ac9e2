package eventlog

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
)

const (
	maxLine = 64 << 10 // longest line read, longer than any event
	maxID   = 1 << 53  // largest integer that every JSON reader represents exactly
)

// decode calls take for each event until it returns false. It skips malformed lines, left behind by a kill or power
// failure.
func decode(r io.Reader, take func(Event) bool) (more bool, err error) {
	lines := bufio.NewReaderSize(r, maxLine)
	for whole := true; ; {
		line, err := lines.ReadSlice('\n')
		if tooLong := errors.Is(err, bufio.ErrBufferFull); tooLong || !whole {
			whole = !tooLong // skip the rest of an overlong line too
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
