package cloud

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"tendril/internal/aws"
	"tendril/internal/config"
)

func TestQueueThatAnotherOwnerCreatesMeanwhileIsNotReportedAsMissing(t *testing.T) {
	created := false
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch _, action, _ := strings.Cut(r.Header.Get("X-Amz-Target"), "."); {
		case action == "CreateQueue":
			created = true
			w.WriteHeader(http.StatusBadRequest)
			io.WriteString(w, `{"__type":"com.amazonaws.sqs#QueueNameExists","message":"other attributes"}`)
		case action == "GetQueueUrl" && !created:
			w.WriteHeader(http.StatusBadRequest)
			io.WriteString(w, `{"__type":"com.amazonaws.sqs#QueueDoesNotExist","message":"missing"}`)
		case action == "GetQueueUrl":
			io.WriteString(w, `{"QueueUrl":"http://`+r.Host+`/123456789012/shop"}`)
		default: // ListQueueTags
			io.WriteString(w, `{}`)
		}
	}))
	t.Cleanup(server.Close)
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIA")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	sqs, err := aws.OpenSQS(t.Context(), &aws.Options{Region: "eu-west-1", Endpoint: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sqs.Close)

	err = EnsureQueue(t.Context(), sqs, &config.Settings{Name: "shop"}, &config.QueueSettings{Name: "shop"},
		slog.New(slog.DiscardHandler))
	if !errors.Is(err, ErrNotOwned) || strings.Contains(err.Error(), "not found") {
		t.Errorf("got %v", err)
	}
}
