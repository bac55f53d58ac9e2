package aws

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"tendril/internal/testing/testpeer"
	"tendril/queue"
)

func TestAgainstAForeignS3(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("a Python server is slow: not with -short")
	}
	endpoint := testpeer.Moto(t, "s3")
	ctx := context.Background()
	s := openS3(t, &Options{Region: "eu-west-1", Endpoint: endpoint})
	bucket := "payloads"
	place := &types.CreateBucketConfiguration{LocationConstraint: types.BucketLocationConstraintEuWest1}
	create := &s3.CreateBucketInput{Bucket: &bucket, CreateBucketConfiguration: place}
	api := s3.New(s3.Options{Region: "eu-west-1", BaseEndpoint: &endpoint, UsePathStyle: true, Credentials: s.credentials})
	if _, err := api.CreateBucket(ctx, create); err != nil {
		t.Fatal(err)
	}
	for key, contents := range map[string]string{"a/ü ?+%.json": "{\"n\":1}", "empty": "",
		"large": strings.Repeat("x", 3<<20)} {
		if _, err := api.PutObject(ctx,
			&s3.PutObjectInput{Bucket: &bucket, Key: &key, Body: bytes.NewReader([]byte(contents))}); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Fetch(ctx, bucket, key, int64(len(contents))); err != nil || string(got) != contents {
			t.Errorf("%s: %d bytes, %v", key, len(got), err)
		}
		if len(contents) > 0 {
			_, err := s.Fetch(ctx, bucket, key, int64(len(contents)-1))
			wantCode(t, err, codeObjectTooLarge)
		}
	}
	_, err := s.Fetch(ctx, bucket, "missing", 10)
	wantCode(t, err, queue.CodeResourceNotFound, `object "missing" does not exist in bucket payloads`)
	_, err = s.Fetch(ctx, "nowhere", "missing", 10)
	wantCode(t, err, queue.CodeResourceNotFound, "bucket nowhere does not exist")

	l := openLambda(t, &LambdaOptions{Function: "missing", Client: Options{Region: "eu-west-1", Endpoint: endpoint}})
	wantCode(t, l.Check(ctx), queue.CodeResourceNotFound, "Lambda function missing does not exist")
	_, err = l.FunctionTimeout(ctx)
	wantCode(t, err, queue.CodeResourceNotFound, "Lambda function missing does not exist")
	if got, err := l.Invoke(ctx, []byte("{}"), nil); err != nil || got.Status != 404 ||
		got.Code != "ResourceNotFoundException" {
		t.Errorf("got %+v, %v", got, err)
	}
}
