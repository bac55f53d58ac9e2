package sqsapi

import (
	"strings"
	"testing"
	"time"
)

func TestCheckListenAddress(t *testing.T) {
	t.Parallel()
	for _, addr := range []string{"127.0.0.1:9324", "127.0.0.1:0", "127.8.8.8:80", "[::1]:9324", "[::ffff:127.0.0.1]:1", "localhost:65535"} {
		if err := CheckListenAddress(addr); err != nil {
			t.Errorf("CheckListenAddress(%q) = %v", addr, err)
		}
	}
	const notLocal = "this machine only; give 127.0.0.1:9324, [::1]:9324 or localhost:9324"
	tests := []struct{ addr, want string }{
		{"0.0.0.0:9324", notLocal},
		{":9324", notLocal},
		{"[::]:9324", notLocal},
		{"192.168.1.5:9324", notLocal},
		{"queue.example:9324", notLocal},
		{"localhost.evil.example:9324", notLocal},
		{"127.0.0.1", "not of the form HOST:PORT"},
		{"", "not of the form HOST:PORT"},
		{"::1:9324", "not of the form HOST:PORT"},
		{"127.0.0.1:", `has the port ""`},
		{"127.0.0.1:sqs", `has the port "sqs"`},
		{"127.0.0.1:65536", `has the port "65536"`},
	}
	for _, test := range tests {
		err := CheckListenAddress(test.addr)
		if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), `"`+test.addr+`"`) {
			t.Errorf("CheckListenAddress(%q) = %v, want the address and %q", test.addr, err, test.want)
		}
	}
}

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
