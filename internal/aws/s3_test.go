package aws

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"tendril/queue"
)

func objectServer(t *testing.T, handle http.HandlerFunc) (*S3, *atomic.Int32) {
	t.Helper()
	var calls atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		handle(w, r)
	}))
	t.Cleanup(server.Close)
	s := openS3(t, &Options{Region: "eu-west-1", Endpoint: server.URL})
	s.retries.retryer = retry.NewStandard(func(o *retry.StandardOptions) {
		o.Backoff = retry.BackoffDelayerFunc(func(int, error) (d time.Duration, err error) { return 0, nil })
	})
	return s, &calls
}

func openS3(t *testing.T, opts *Options) *S3 {
	t.Helper()
	s, err := OpenS3(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func refuseObject(status int, code, message string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/xml")
		w.WriteHeader(status)
		if code != "" {
			fmt.Fprintf(w, `<?xml version="1.0" encoding="UTF-8"?><Error><Code>%s</Code><Message>%s</Message></Error>`, code,
				message)
		}
	}
}

func TestFetch(t *testing.T) {
	t.Parallel()
	s, calls := objectServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || r.URL.Path != "/payloads/a b/ü?.json" ||
			!strings.Contains(r.Header.Get("Authorization"), "/eu-west-1/s3/") {
			t.Errorf("asked %s %s", r.Method, r.URL)
		}
		io.WriteString(w, "12345")
	})
	got, err := s.Fetch(t.Context(), "payloads", "a b/ü?.json", 5)
	if err != nil || string(got) != "12345" || calls.Load() != 1 {
		t.Errorf("got %q, %v after %d calls", got, err, calls.Load())
	}
	_, err = s.Fetch(t.Context(), "payloads", "a b/ü?.json", 4)
	wantCode(t, err, codeObjectTooLarge, `object "a b/ü?.json" in bucket payloads is larger than the 4 bytes allowed`)
	for _, names := range [][2]string{{"", "k"}, {"b", ""}} {
		_, err = s.Fetch(t.Context(), names[0], names[1], 5)
		wantCode(t, err, queue.CodeInvalidParameterValue, "the bucket or the key of the object is empty")
	}
	if calls.Load() != 2 {
		t.Errorf("%d calls", calls.Load())
	}
}

func TestFetchIsBounded(t *testing.T) {
	t.Parallel()
	chunk := bytes.Repeat([]byte("x"), 64<<10)
	s, _ := objectServer(t, func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	})
	_, err := s.Fetch(t.Context(), "b", "k", 1<<20)
	wantCode(t, err, codeObjectTooLarge)
}

func TestRefusedFetches(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		status        int
		code, message string
		want          string
		calls         int32
		words         []string
	}{
		{404, "NoSuchKey", "The specified key does not exist.", queue.CodeResourceNotFound, 1,
			[]string{`object "k" does not exist in bucket b`}},
		{404, "NoSuchBucket", "The specified bucket does not exist", queue.CodeResourceNotFound, 1,
			[]string{"bucket b does not exist at http://"}},
		{404, "", "", queue.CodeResourceNotFound, 1, []string{`object "k" does not exist`}},
		{403, "AccessDenied", "Access Denied", queue.CodeAccessDenied, 1, []string{"s3:GetObject", "s3:ListBucket"}},
		{403, "InvalidObjectState", "in Glacier", queue.CodeAccessDenied, 1, []string{"in Glacier"}},
		{301, "PermanentRedirect", "use the other endpoint", queue.CodeInvalidParameterValue, 1, []string{"is not in the region of"}},
		{400, "AuthorizationHeaderMalformed", "expecting us-east-1", queue.CodeInvalidParameterValue, 1,
			[]string{"is not in the region of"}},
		{503, "SlowDown", "Please reduce your request rate.", queue.CodeRequestThrottled, 3,
			[]string{"reduce your request rate"}},
		{503, "", "", queue.CodeUnreachable, 3, []string{"Service Unavailable"}},
		{502, "", "", queue.CodeUnreachable, 3, []string{"Bad Gateway"}},
		{500, "InternalError", "We encountered an internal error.", queue.CodeUnreachable, 3, []string{"internal error"}},
	} {
		s, calls := objectServer(t, refuseObject(test.status, test.code, test.message))
		_, err := s.Fetch(t.Context(), "b", "k", 10)
		wantCode(t, err, test.want, test.words...)
		if calls.Load() != test.calls {
			t.Errorf("%d %s: %d calls, want %d", test.status, test.code, calls.Load(), test.calls)
		}
	}
}

func TestIncompleteObjectIsFetchedAgain(t *testing.T) {
	t.Parallel()
	broken := func(w http.ResponseWriter) {
		w.Header().Set("Content-Length", "100")
		io.WriteString(w, "12")
	}
	var n atomic.Int32
	s, calls := objectServer(t, func(w http.ResponseWriter, _ *http.Request) {
		if n.Add(1) < 3 {
			broken(w)
			return
		}
		io.WriteString(w, "12345")
	})
	if got, err := s.Fetch(t.Context(), "b", "k", 1000); err != nil || string(got) != "12345" || calls.Load() != 3 {
		t.Errorf("got %q, %v after %d calls", got, err, calls.Load())
	}
	s, calls = objectServer(t, func(w http.ResponseWriter, _ *http.Request) { broken(w) })
	_, err := s.Fetch(t.Context(), "b", "k", 1000)
	wantCode(t, err, queue.CodeUnreachable, `fetching object "k" from bucket b`, "unexpected EOF")
	if calls.Load() != 3 {
		t.Errorf("%d calls", calls.Load())
	}
}

func TestFetchEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	s, _ := objectServer(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "100")
		io.WriteString(w, "12")
		w.(http.Flusher).Flush()
		cancel()
		<-r.Context().Done()
	})
	if _, err := s.Fetch(ctx, "b", "k", 1000); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestRefusedStoresNameThePermission(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		status int
		code   string
		want   string
		words  []string
	}{
		"denied": {403, "AccessDenied", queue.CodeAccessDenied, []string{"these credentials s3:PutObject on the object",
			"these credentials s3:DeleteObject on the object", "these credentials s3:ListBucket on the bucket"}},
		"no bucket": {404, "NoSuchBucket", queue.CodeResourceNotFound, slices.Repeat([]string{"bucket b does not exist at http://"}, 3)},
		"region":    {301, "PermanentRedirect", queue.CodeInvalidParameterValue, slices.Repeat([]string{"is not in the region of"}, 3)},
		"changed":   {400, "XAmzContentSHA256Mismatch", "XAmzContentSHA256Mismatch", []string{"rejected s3:PutObject", "", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _ := objectServer(t, refuseObject(test.status, test.code, "refused"))
			for i, err := range []error{s.Put(t.Context(), "b", "k", strings.NewReader("x"), 1), s.Delete(t.Context(), "b", "k"),
				s.CheckBucket(t.Context(), "b")} {
				if i < 2 || test.status != 400 { // a HEAD has only a status
					wantCode(t, err, test.want, test.words[i])
				}
			}
		})
	}
}

func TestGetContinues(t *testing.T) {
	t.Parallel()
	for name, ranges := range map[string]bool{"with ranges": true, "without ranges": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var n atomic.Int32
			s, calls := objectServer(t, func(w http.ResponseWriter, r *http.Request) {
				from, call := 0, n.Add(1)
				if ranges && r.Header.Get("Range") != "" {
					fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-", &from)
					w.WriteHeader(http.StatusPartialContent)
				} else {
					w.Header().Set("Content-Length", "5")
				}
				if call%3 != 0 {
					io.WriteString(w, "12345"[from:from+int(call)])
					w.(http.Flusher).Flush()
					panic(http.ErrAbortHandler)
				}
				io.WriteString(w, "12345"[from:])
			})
			var got strings.Builder
			if err := s.Get(t.Context(), "b", "k", &got); err != nil || got.String() != "12345" || calls.Load() != 3 {
				t.Errorf("got %q, %v after %d calls", got.String(), err, calls.Load())
			}
		})
	}

	s, calls := objectServer(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "12345") })
	full := errors.New("full")
	reader, writer := io.Pipe()
	reader.CloseWithError(full)
	if err := s.Get(t.Context(), "b", "k", writer); !errors.Is(err, full) || calls.Load() != 1 {
		t.Errorf("a failing writer: %v after %d calls", err, calls.Load())
	}
}

func TestFetchWithoutAnAnswerInTime(t *testing.T) {
	t.Parallel()
	s, _ := objectServer(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := s.Fetch(ctx, "b", "k", 1000)
	wantCode(t, err, queue.CodeUnreachable, `fetching object "k" from bucket b`, "did not respond in time;")
	s.credentials = sdk.CredentialsProviderFunc(func(ctx context.Context) (sdk.Credentials, error) {
		return sdk.Credentials{}, ctx.Err()
	})
	_, err = s.Fetch(ctx, "b", "k", 1000)
	wantCode(t, err, queue.CodeUnreachable, "did not respond in time;")
}

func TestS3Settings(t *testing.T) {
	_, err := OpenS3(t.Context(), nil)
	wantCode(t, err, queue.CodeInvalidParameterValue, "no AWS region for the S3 client: set AWS_REGION")
	s := openS3(t, &Options{Region: "eu-north-1"})
	if o := s.place; *o.ForcePathStyle || s.service.host != "S3 in eu-north-1" {
		t.Errorf("path style %v, host %s", *o.ForcePathStyle, s.service.host)
	}
	t.Setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:1")
	s = openS3(t, nil)
	if o := s.place; !*o.ForcePathStyle || sdk.ToString(o.Endpoint) != "http://127.0.0.1:1" || *o.Region != localRegion {
		t.Errorf("path style %v, endpoint %v, region %s", *o.ForcePathStyle, o.Endpoint, *o.Region)
	}
	if _, err := OpenS3(t.Context(), &Options{Profile: "nobody"}); err == nil ||
		!strings.Contains(err.Error(), "AWS_PROFILE") {
		t.Errorf("a profile that is not there: %v", err)
	}
}

func TestObjectRequests(t *testing.T) {
	for _, test := range []struct {
		bucket, key string
		variables   map[string]string
		want        string
		signedFor   string
	}{
		{"photos", "a b/ü?+%.json", nil,
			"GET https://photos.s3.eu-west-1.amazonaws.com/a%20b/%C3%BC%3F%2B%25.json", "eu-west-1/s3"},
		{"dotted.name", "k", nil, "GET https://s3.eu-west-1.amazonaws.com/dotted.name/k", "eu-west-1/s3"},
		{"photos", "k", map[string]string{"AWS_REGION": "cn-north-1"},
			"GET https://photos.s3.cn-north-1.amazonaws.com.cn/k", "cn-north-1/s3"},
		{"photos", "/k//../l", map[string]string{"AWS_USE_DUALSTACK_ENDPOINT": "true"},
			"GET https://photos.s3.dualstack.eu-west-1.amazonaws.com//k//../l", "eu-west-1/s3"},
		{"photos", "k", map[string]string{"AWS_USE_FIPS_ENDPOINT": "true", "AWS_REGION": "us-west-2"},
			"GET https://photos.s3-fips.us-west-2.amazonaws.com/k", "us-west-2/s3"},
		{"arn:aws:s3:eu-west-1:123456789012:accesspoint/mine", "k", nil,
			"GET https://mine-123456789012.s3-accesspoint.eu-west-1.amazonaws.com/k", "eu-west-1/s3"},
		{"photos", "k", map[string]string{"AWS_ENDPOINT_URL_S3": "http://127.0.0.1:9000/base"},
			"GET http://127.0.0.1:9000/base/photos/k", "eu-west-1/s3"},
		{"photos", "k", map[string]string{"AWS_ENDPOINT_URL_S3": "http://127.0.0.1:9000",
			"AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "true"},
			"GET https://photos.s3.eu-west-1.amazonaws.com/k", "eu-west-1/s3"},
		{"express--euw1-az1--x-s3", "k", nil,
			"GET https://express--euw1-az1--x-s3.s3express-euw1-az1.eu-west-1.amazonaws.com/k", "eu-west-1/s3express"},
	} {
		t.Run(test.want, func(t *testing.T) {
			t.Setenv("AWS_REGION", "eu-west-1")
			t.Setenv("AWS_ACCESS_KEY_ID", "key")
			t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
			for name, value := range test.variables {
				t.Setenv(name, value)
			}
			req, err := openS3(t, nil).request(t.Context(), &objectCall{operation: getObject, bucket: test.bucket,
				key: test.key}, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			if got := req.Method + " " + req.URL.String(); got != test.want {
				t.Errorf("asked %s, want %s", got, test.want)
			}
			signed := req.Header.Get("Authorization")
			if !strings.Contains(signed, "/"+test.signedFor+"/aws4_request") {
				t.Errorf("signed as %s, want %s", signed, test.signedFor)
			}
			// S3 signs paths without escaping them again (Signature Version 4, canonical URI).
			again, at := req.Clone(t.Context()), req.Header.Get("X-Amz-Date")
			again.Header.Del("Authorization")
			when, err := time.Parse("20060102T150405Z", at)
			if err != nil {
				t.Fatal(err)
			}
			region, service, _ := strings.Cut(test.signedFor, "/")
			if err := v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true }).SignHTTP(t.Context(),
				sdk.Credentials{AccessKeyID: "key", SecretAccessKey: "secret"}, again, emptyDigest, service, region,
				when); err != nil || again.Header.Get("Authorization") != signed {
				t.Errorf("signed as %s, want %s; %v", signed, again.Header.Get("Authorization"), err)
			}
		})
	}
	t.Setenv("AWS_REGION", "eu-west-1")
	_, err := openS3(t, nil).Fetch(t.Context(), "arn:aws:s3::123456789012:accesspoint:many.mrap", "k", 1)
	wantCode(t, err, queue.CodeInvalidParameterValue, "is a multi-Region access point")
}

// The checksums are the algorithms' check values for "123456789", in base64.
func TestObjectsAreCheckedAgainstTheirChecksum(t *testing.T) {
	t.Parallel()
	for name, sum := range map[string]string{
		"X-Amz-Checksum-Crc32":     "y/Q5Jg==",
		"X-Amz-Checksum-Crc32c":    "4waSgw==",
		"X-Amz-Checksum-Crc64nvme": "rosUhgp5mIg=",
		"X-Amz-Checksum-Sha1":      "98O8HYCOBHMq32eZZczDTKeuNEE=",
		"X-Amz-Checksum-Sha256":    "FeKw08M4keuw8e9gnsQZQgwg4yDOlMZfvIwzEkSOsiU=",
	} {
		damaged := atomic.Bool{}
		s, calls := objectServer(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("X-Amz-Checksum-Mode") != "ENABLED" {
				t.Error("the checksum was not asked for")
			}
			w.Header().Set(name, sum)
			if damaged.Load() {
				io.WriteString(w, "123456780")
				return
			}
			io.WriteString(w, "123456789")
		})
		if got, err := s.Fetch(t.Context(), "b", "k", 9); err != nil || string(got) != "123456789" {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
		damaged.Store(true)
		_, err := s.Fetch(t.Context(), "b", "k", 9)
		wantCode(t, err, queue.CodeUnreachable, "do not match their checksum")
		if calls.Load() != 4 {
			t.Errorf("%s: %d calls", name, calls.Load())
		}
	}
	s, _ := objectServer(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Amz-Checksum-Crc32", "AAAAAA==-3")
		io.WriteString(w, "123456789")
	})
	if _, err := s.Fetch(t.Context(), "b", "k", 9); err != nil {
		t.Error(err)
	}
}
