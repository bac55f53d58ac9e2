package broker

import (
	"fmt"
	"testing"
	"time"
)

func BenchmarkReasons(b *testing.B) {
	br := openBench(b)
	q := withDeadLetters(b, br)
	began := time.Now()
	for n := 0; n < depth(); {
		for range 100 {
			send(b, q, body("a", "b", "c", "d", "e", "f", "g", "h", "i", "j")...)
		}
		for list := take(b, q, 10); len(list) > 0; list = take(b, q, 10) {
			for _, m := range list {
				n++
				br.RecordAttempt("work", m.ID, failing(422, fmt.Sprintf("no field %c in order %d", 'a'+n%20, n)))
			}
		}
	}
	b.Logf("%d dead letters in %v, %.0f MB", depth(), time.Since(began), float64(diskBytes(br.dir))/1e6)
	b.Run("groups", func(b *testing.B) {
		for b.Loop() {
			groups, err := br.DeadLetterReasons(b.Context(), "dead")
			if err != nil || len(groups) != 20 || groups[0].Count < depth()/20 {
				b.Fatal(len(groups), err)
			}
		}
	})
	b.Run("page", func(b *testing.B) {
		reason := "HTTP 422 no field t in order #"
		for b.Loop() {
			page, _, err := br.Browse(b.Context(), "dead", BrowseRequest{Filter: Filter{Reason: &reason}, Limit: 100})
			if err != nil || len(page) != 100 {
				b.Fatal(len(page), err)
			}
		}
	})
}
