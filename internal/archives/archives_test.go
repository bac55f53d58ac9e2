package archives

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"log"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"tendril/broker"
	"tendril/internal/aws"
	"tendril/internal/registry"
	"tendril/internal/sqsapi"
	"tendril/internal/testing/testpeer"
	"tendril/queue"
)

func TestFoldersServersAndBucketsStoreArchives(t *testing.T) {
	t.Parallel()
	for name, store := range map[string]Store{
		"folder":                     Folder(filepath.Join(t.TempDir(), "shared")),
		"server":                     Server{clientOf(t, ServedFolder(filepath.Join(t.TempDir(), "archives")))},
		"bucket":                     Bucket{Objects: objectsAt(t, objectServer(t)), Name: "archives", Prefix: "app/prod"},
		"bucket without a prefix":    Bucket{Objects: objectsAt(t, objectServer(t)), Name: "archives"},
		"bucket with short response": Bucket{Objects: objectsAt(t, interrupted(t, objectServer(t))), Name: "archives"},
	} {
		t.Run(name, func(t *testing.T) { conform(t, store) })
	}
}

func TestBucketOnMotoStoresArchives(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("a Python server is slow: not with -short")
	}
	endpoint := testpeer.Moto(t, "s3")
	objects := objectsAt(t, endpoint)
	store := Bucket{Objects: objects, Name: "archives", Prefix: "app"}
	err := store.Put(t.Context(), "x", strings.NewReader("x"), 1)
	if err == nil || !strings.Contains(err.Error(), "bucket archives does not exist at "+endpoint) {
		t.Errorf("storing without a bucket: %v", err)
	}
	if err := objects.CheckBucket(t.Context(), "archives"); err == nil || !strings.Contains(err.Error(), "does not exist") {
		t.Errorf("checking a missing bucket: %v", err)
	}

	testpeer.CreateBucket(t, endpoint, "archives")
	if err := objects.CheckBucket(t.Context(), "archives"); err != nil {
		t.Errorf("checking the bucket: %v", err)
	}
	conform(t, store)
}

func objectsAt(t *testing.T, endpoint string) *aws.S3 {
	t.Helper()
	client, err := aws.OpenS3(t.Context(), &aws.Options{Region: "us-east-1", Endpoint: endpoint})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

func objectServer(t *testing.T) (endpoint string) {
	var mu sync.Mutex
	objects := map[string][]byte{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		switch contents, found := objects[r.URL.Path]; {
		case r.Method == http.MethodPut:
			objects[r.URL.Path], _ = io.ReadAll(r.Body)
			if sum := sha256.Sum256(objects[r.URL.Path]); r.Header.Get("X-Amz-Content-Sha256") != hex.EncodeToString(sum[:]) {
				t.Error("an upload has another digest than its contents")
			}
		case r.Method == http.MethodDelete:
			delete(objects, r.URL.Path)
			w.WriteHeader(http.StatusNoContent)
		case !found:
			w.WriteHeader(http.StatusNotFound)
		default:
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(contents))
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func interrupted(t *testing.T, endpoint string) string {
	to, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.ErrorLog = log.New(io.Discard, "", 0)
	proxy.ModifyResponse = func(resp *http.Response) error {
		if resp.Request.Method == http.MethodGet && resp.Request.Header.Get("Range") == "" && resp.ContentLength > 1 {
			resp.Body = io.NopCloser(io.LimitReader(resp.Body, resp.ContentLength/2))
		}
		return nil
	}
	server := httptest.NewServer(proxy)
	t.Cleanup(server.Close)
	return server.URL
}

func clientOf(t *testing.T, archives sqsapi.Archives) *sqsapi.RegistryClient {
	t.Helper()
	b, err := broker.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(sqsapi.New(b, &sqsapi.Options{Archives: archives}))
	t.Cleanup(func() { server.Close(); b.Close() })
	return sqsapi.NewRegistryClient(server.URL, registry.Scope{}, sqsapi.Identity{}, server.Client())
}

func TestServersWithoutArchivesSaySo(t *testing.T) {
	t.Parallel()
	err := Server{clientOf(t, nil)}.Put(t.Context(), "x", strings.NewReader("x"), 1)
	if err == nil || !strings.Contains(err.Error(), "stores no archives") {
		t.Errorf("storing: %v", err)
	}
}

func conform(t *testing.T, store Store) {
	t.Helper()
	ctx, path := t.Context(), filepath.Join(t.TempDir(), "cache", "app.zip")
	for _, size := range []int{1, chunkSize, 2*chunkSize + 7} {
		content := make([]byte, size)
		rand.NewChaCha8([32]byte{byte(size)}).Read(content)
		given := filepath.Join(t.TempDir(), "given.zip")
		if err := os.WriteFile(given, content, 0o600); err != nil {
			t.Fatal(err)
		}
		digest, length, err := Digest(given)
		if err != nil || length != int64(size) {
			t.Fatalf("digest of %d bytes: %d, %v", size, length, err)
		}
		name := Name("periodic:jobs", digest)
		for range 2 {
			if err := store.Put(ctx, name, bytes.NewReader(content), length); err != nil {
				t.Fatalf("storing %d bytes: %v", size, err)
			}
		}
		if err := Fetch(ctx, store, name, digest, length, path); err != nil {
			t.Fatalf("fetching %d bytes: %v", size, err)
		}
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, content) {
			t.Errorf("fetched %d bytes instead of %d: %v", len(got), size, err)
		}

		other := strings.Repeat("0", 64)
		for what, err := range map[string]error{
			"another digest": Fetch(ctx, store, name, other, length, path+".other"),
			"a smaller size": Fetch(ctx, store, name, other, length-1, path+".other"),
			"a larger size":  Fetch(ctx, store, name, digest, length+1, path+".other"),
		} {
			if !errors.Is(err, ErrOtherContent) {
				t.Errorf("with %s: %v", what, err)
			}
		}
		for range 2 {
			if err := store.Delete(ctx, name); err != nil {
				t.Errorf("deleting: %v", err)
			}
		}
		if err := Fetch(ctx, store, name, other, length, path+".other"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a deleted archive: %v", err)
		}
		if err := Fetch(ctx, store, name, digest, length, path); err != nil {
			t.Errorf("an archive that was fetched before: %v", err)
		}
	}
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 1 {
		t.Errorf("the cache contains %v: %v", left, err)
	}
}

func TestServersRefuseInvalidChunks(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "archives")
	f := ServedFolder(dir)
	for what, write := range map[string]func(context.Context) error{
		"name":   func(ctx context.Context) error { return f.WriteArchive(ctx, "../x", "up", 0, 1, []byte("x")) },
		"upload": func(ctx context.Context) error { return f.WriteArchive(ctx, "x", "a/b", 0, 1, []byte("x")) },
		"size":   func(ctx context.Context) error { return f.WriteArchive(ctx, "x", "up", 0, MaxSize+1, []byte("x")) },
		"offset": func(ctx context.Context) error { return f.WriteArchive(ctx, "x", "up", 1, 1, []byte("x")) },
		"offset near the largest integer": func(ctx context.Context) error {
			err := f.WriteArchive(ctx, "x", "up", math.MaxInt64, 1, []byte("x"))
			if !errors.Is(err, &queue.Error{Code: queue.CodeInvalidParameterValue}) {
				return nil
			}
			return err
		},
		"chunk": func(ctx context.Context) error {
			return f.WriteArchive(ctx, "x", "up", 0, MaxSize, make([]byte, chunkSize+1))
		},
		"name to read":   func(ctx context.Context) error { _, _, err := f.ReadArchive(ctx, "../x", 0); return err },
		"name to delete": func(ctx context.Context) error { return f.DeleteArchive(ctx, ".part-x") },
	} {
		if write(t.Context()) == nil {
			t.Errorf("an invalid %s is accepted", what)
		}
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("an invalid chunk created the folder")
	}
}

func TestServersRefuseChunksWithoutTheirPredecessor(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f, ctx := ServedFolder(dir), t.Context()
	refused := &queue.Error{Code: queue.CodeInvalidParameterValue}
	if err := f.WriteArchive(ctx, "x", "up", 1, 2, []byte("x")); !errors.Is(err, refused) {
		t.Errorf("an upload that starts in the middle: %v", err)
	}
	if err := f.WriteArchive(ctx, "x", "up", 0, 3, []byte("x")); err != nil {
		t.Fatal(err)
	}
	if err := f.WriteArchive(ctx, "x", "up", 2, 3, []byte("z")); !errors.Is(err, refused) {
		t.Errorf("a chunk after a gap: %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("the folder contains %v: %v", left, err)
	}
	if err := f.WriteArchive(ctx, "x", "up", 1, 3, []byte("yz")); err != nil {
		t.Error(err)
	}
	if data, size, err := f.ReadArchive(ctx, "x", 0); err != nil || size != 3 || string(data) != "xyz" {
		t.Errorf("the archive is %q, %d bytes, %v", data, size, err)
	}
}

func TestServersDeleteAbandonedUploadsAndLimitArchives(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f, ctx := ServedFolder(dir), t.Context()
	if err := f.WriteArchive(ctx, "x", "abandoned", 0, 2, []byte("x")); err != nil {
		t.Fatal(err)
	}
	if err := f.WriteArchive(ctx, "x", "recent", 0, 2, []byte("x")); err != nil {
		t.Fatal(err)
	}
	long := time.Now().Add(-2 * staleUpload)
	if err := os.Chtimes(filepath.Join(dir, ".part-abandoned"), long, long); err != nil {
		t.Fatal(err)
	}
	store, err := Server{f}, error(nil)
	for i := 0; err == nil && i <= maxArchives; i++ {
		err = store.Put(ctx, Name("jobs", strings.Repeat("a", i)), strings.NewReader("x"), 1)
	}
	left, _ := os.ReadDir(dir)
	if err == nil || len(left) != maxArchives {
		t.Errorf("%d files are stored: %v", len(left), err)
	}
	if _, err := os.Stat(filepath.Join(dir, ".part-abandoned")); err == nil {
		t.Error("the abandoned upload was not deleted")
	}
	if _, err := os.Stat(filepath.Join(dir, ".part-recent")); err != nil {
		t.Error("the recent upload was deleted")
	}
}

func TestFetchKeepsNothingOfAFailedDownload(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	err := Fetch(t.Context(), broken{}, "x", "", 100, filepath.Join(dir, "app.zip"))
	if left, _ := os.ReadDir(dir); !errors.Is(err, io.ErrUnexpectedEOF) || len(left) > 0 {
		t.Errorf("the folder contains %v: %v", left, err)
	}
}

type broken struct{ Store }

func (broken) Get(_ context.Context, _ string, w io.Writer) error {
	w.Write([]byte("half"))
	return io.ErrUnexpectedEOF
}
