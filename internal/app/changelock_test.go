package app

import (
	"sync"
	"testing"
	"time"
)

func TestChangeThatStartsDuringAStopDoesNotBlockIt(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
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
	}()

	select {
	case <-ended:
	case <-time.After(2 * time.Minute):
		t.Fatal("a stop waits for a change that waits for it")
	}
}
