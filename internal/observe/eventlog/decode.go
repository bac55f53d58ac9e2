package eventlog

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
)

const (
	maxLine = 64 << 10 // the longest line that is read: more than any event has
	maxID   = 1 << 53  // which every reader of JSON can tell from the next one
)

// decode calls take for each line that is an event, until it returns false. Other lines are skipped: a process that
// was killed, or a machine that lost power, may leave a part of one.
func decode(r io.Reader, take func(Event) bool) (more bool, err error) {
	lines := bufio.NewReaderSize(r, maxLine)
	for whole := true; ; {
		line, err := lines.ReadSlice('\n')
		if tooLong := errors.Is(err, bufio.ErrBufferFull); tooLong || !whole {
			whole = !tooLong // the rest of a line that is too long is skipped too
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
