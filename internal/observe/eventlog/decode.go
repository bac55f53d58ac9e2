package eventlog

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
)

const (
	maxLine = 64 << 10
	maxID   = 1 << 53 // exact in every JSON parser
)

// A crash can leave malformed lines, which decode skips.
func decode(r io.Reader, visit func(Event) bool) (more bool, err error) {
	return eachLine(r, func(line []byte) bool {
		var e Event
		isEvent := json.Unmarshal(line, &e) == nil && e.ID > 0 && e.ID < maxID && e.Kind != ""
		return !isEvent || visit(e)
	})
}

func eachLine(r io.Reader, visit func(line []byte) bool) (more bool, err error) {
	lines := bufio.NewReaderSize(r, maxLine)
	for whole := true; ; {
		line, err := lines.ReadSlice('\n')
		tooLong := errors.Is(err, bufio.ErrBufferFull)
		if whole && !tooLong && len(line) > 1 && !visit(line) {
			return false, nil
		}
		whole = !tooLong
		if errors.Is(err, io.EOF) {
			return true, nil
		}
		if err != nil && !tooLong {
			return false, err
		}
	}
}
