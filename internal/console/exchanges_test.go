package console

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"

	"tendril/api"
)

func TestExchangesAreRecordedForAWhile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var ds Deliveries
		if ds.RecordsExchanges() {
			t.Error("exchanges are recorded unasked")
		}
		ds.RecordExchanges(time.Minute)
		ds.RecordExchanges(time.Second)
		time.Sleep(59 * time.Second)
		if !ds.RecordsExchanges() {
			t.Error("recording ended early")
		}
		ds.AddExchange(api.Exchange{MessageID: "m1", Body: "old"})
		ds.AddExchange(api.Exchange{MessageID: "m1", Body: "new"})
		if x, found := ds.Exchange("m1"); !found || x.Body != "new" {
			t.Errorf("the latest exchange is %+v, %v", x, found)
		}
		time.Sleep(time.Second)
		if _, found := ds.Exchange("m1"); ds.RecordsExchanges() || !found {
			t.Errorf("after the end: recorded %v, found %v", ds.RecordsExchanges(), found)
		}
		if until := ds.RecordExchanges(time.Hour); time.Until(until) != api.MaxRecording {
			t.Errorf("recorded for %s", time.Until(until))
		}
		if _, found := ds.Exchange("m1"); found {
			t.Error("an earlier recording is remembered")
		}
	})
}

func TestExchangesAreBounded(t *testing.T) {
	t.Parallel()
	var ds Deliveries
	ds.RecordExchanges(time.Minute)
	for i := range keptExchanges + 1 {
		ds.AddExchange(api.Exchange{MessageID: strconv.Itoa(i), Body: "x"})
	}
	if _, found := ds.Exchange("0"); found {
		t.Error("the oldest exchange is remembered")
	}
	if _, found := ds.Exchange("1"); !found {
		t.Error("too few are remembered")
	}
	large := strings.Repeat("x", 2*maxExchangeBody)
	for i := range keptBytes/maxExchangeBody + 1 {
		ds.AddExchange(api.Exchange{MessageID: "large" + strconv.Itoa(i), Body: large})
	}
	x, found := ds.Exchange("large" + strconv.Itoa(keptBytes/maxExchangeBody))
	if !found || len(x.Body) != maxExchangeBody || x.BodySize != len(large) {
		t.Errorf("%d of %d bytes, %v", len(x.Body), x.BodySize, found)
	}
	if unsafe.StringData(x.Body) == unsafe.StringData(large) {
		t.Error("the whole body stays in memory")
	}
	if _, found := ds.Exchange("large0"); found || ds.exchanges.bytes > keptBytes {
		t.Errorf("%d bytes are remembered", ds.exchanges.bytes)
	}
}

func TestExchangesThroughTheConsole(t *testing.T) {
	t.Parallel()
	ds := &Deliveries{}
	c := dial(t, &Options{Deliveries: ds})
	var refusal *api.Error
	if _, err := c.Exchange(t.Context(), "m1"); !errors.As(err, &refusal) || refusal.Status != http.StatusNotFound {
		t.Errorf("an exchange that is not there: %v", err)
	}
	if err := c.RecordExchanges(t.Context(), time.Hour); err != nil || !ds.RecordsExchanges() {
		t.Errorf("RecordExchanges: %v", err)
	}
	want := api.Exchange{MessageID: "m1", Queue: "jobs", Request: []string{"POST / HTTP/1.1"}, Body: "b", BodySize: 1,
		Answer: []string{"HTTP/1.1 200 OK"}, AnswerBody: "ok", At: time.Unix(1, 0).UTC(), DurationMS: 3}
	ds.AddExchange(want)
	got, err := c.Exchange(t.Context(), "m1")
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	without, _ := withoutBodies(want)
	hidden := without.(api.Exchange)
	if hidden.Body != "" || hidden.AnswerBody != "" || !hidden.BodyHidden || len(hidden.Request) != 1 {
		t.Errorf("with hidden bodies: %+v", hidden)
	}
}
