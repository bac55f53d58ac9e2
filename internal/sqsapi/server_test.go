package sqsapi

import (
	"strings"
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

func TestTagsOfCreateQueueOverQueryHaveEitherName(t *testing.T) {
	t.Parallel()
	h := newHandler(t, nil)
	for _, name := range []string{"Tag", "Tags"} {
		t.Run(name, func(t *testing.T) {
			form := "Action=CreateQueue&QueueName=" + name + "&" + name + ".1.Key=team&" + name + ".1.Value=a"
			query(t, h, "/", form)
			if got := mustCall(t, h, "ListQueueTags", `{"QueueUrl":"`+name+`"}`); !strings.Contains(got, `"team":"a"`) {
				t.Errorf("tags %s", got)
			}
		})
	}
}
