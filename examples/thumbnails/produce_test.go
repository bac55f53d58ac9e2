package main

import (
	"context"
	"crypto/md5"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestJobsNamePicturesThatWereDrawn(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "source"), 0o755); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	const wanted = 7 // enough for the pictures with stars, at dusk and at night
	var jobs []job
	queue := fakeSQS(t, func(body string) {
		var j job
		if err := json.Unmarshal([]byte(body), &j); err != nil {
			t.Errorf("%s: %v", body, err)
		}
		if info, err := os.Stat(filepath.Join(dir, "source", j.Image)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", body, err)
		}
		if jobs = append(jobs, j); len(jobs) == wanted {
			stop()
		}
	})
	if err := produce(ctx, dir, queue); !errors.Is(err, context.Canceled) {
		t.Errorf("ended with %v", err)
	}
	if len(jobs) != wanted || jobs[0] != (job{"000-dawn.png", narrow}) || jobs[6] != (job{"006-dawn.png", narrow}) {
		t.Errorf("jobs: %+v", jobs)
	}
}

func TestProductionEndsWhenTheQueueRefuses(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "source"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := produce(t.Context(), dir, fakeSQS(t, nil)); err == nil || !strings.Contains(err.Error(), "AccessDenied") {
		t.Errorf("ended with %v", err)
	}
	if err := produce(t.Context(), filepath.Join(dir, "none"), "http://127.0.0.1/"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without a source folder: %v", err)
	}
}

// fakeSQS returns the URL of a queue that passes message bodies to take, or rejects messages if take is nil.
func fakeSQS(t *testing.T, take func(body string)) (queueURL string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		if take == nil {
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `{"__type":"com.amazonaws.sqs#AccessDenied","message":"no"}`)
			return
		}
		var request struct{ MessageBody string }
		if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
			t.Error(err)
		}
		fmt.Fprintf(w, `{"MessageId":"m","MD5OfMessageBody":"%x"}`, md5.Sum([]byte(request.MessageBody)))
		take(request.MessageBody)
	}))
	t.Cleanup(server.Close)
	for name, value := range map[string]string{"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test",
		"AWS_REGION": "eu-west-1", "AWS_ENDPOINT_URL_SQS": server.URL, "AWS_CONFIG_FILE": os.DevNull,
		"AWS_SHARED_CREDENTIALS_FILE": os.DevNull} {
		t.Setenv(name, value)
	}
	return server.URL + "/000000000000/jobs"
}
