package app

import (
	"sync"
	"testing"
)

func TestChangeThatStartsDuringAStopDoesNotBlockIt(t *testing.T) {
	t.Parallel()
	for range 20_000 {
		l := newChangeLock()
		var both sync.WaitGroup
		both.Go(func() {
			if _, end, err := l.begin(t.Context(), toScale); err == nil {
				end()
			}
		})
		both.Go(func() { l.stop()() })
		both.Wait()
	}
}
