package sqsapi

import (
	"testing"
	"time"
)

func TestServerLimits(t *testing.T) {
	t.Parallel()
	s := Server(&Handler{})
	if s.ReadHeaderTimeout <= 0 || s.ReadTimeout <= 0 || s.IdleTimeout <= 0 || s.MaxHeaderBytes <= 0 {
		t.Errorf("a limit is missing: %+v", s)
	}
	if longest := s.ReadTimeout + 20*time.Second; s.WriteTimeout <= longest {
		t.Errorf("WriteTimeout %v cuts a slow body followed by the longest poll, %v", s.WriteTimeout, longest)
	}
}
