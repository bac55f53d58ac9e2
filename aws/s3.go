package aws

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/logging"

	"tendril/queue"
)

// codeObjectTooLarge: the object in S3 is larger than the caller takes.
const codeObjectTooLarge = "ObjectTooLarge"

// S3 fetches objects of Amazon S3, or of a server that speaks its protocol. All
// methods are safe for concurrent use.
type S3 struct {
	service
	api *s3.Client
}

// OpenS3 reads the AWS configuration. It calls nobody. The error names the
// variable or the file at fault.
func OpenS3(ctx context.Context, opts *Options) (*S3, error) {
	opts = cmp.Or(opts, &Options{})
	cfg, service, err := connect(ctx, opts, "S3", "AWS_ENDPOINT_URL_S3", 64)
	if err != nil {
		return nil, err
	}
	api := s3.NewFromConfig(cfg, func(o *s3.Options) {
		o.Logger = logging.Nop{} // each error is returned
		chooseEndpoint(opts.Endpoint, &o.BaseEndpoint, &o.Region)
		o.UsePathStyle = o.BaseEndpoint != nil
	})
	o := api.Options()
	service.terse = true
	if err := service.locate(o.Region, o.BaseEndpoint, "the S3 client"); err != nil {
		return nil, err
	}
	return &S3{service, api}, nil
}

// Fetch returns the contents of an object of at most limit bytes, checked against
// their checksum where S3 has one. It is repeated as the SDK's rules say, also when
// the contents break off. It needs s3:GetObject.
//
// The error is a [*queue.Error]: queue.CodeResourceNotFound when there is no such
// bucket or object, queue.CodeAccessDenied, ObjectTooLarge,
// queue.CodeRequestThrottled, or queue.CodeUnreachable when it may work later, which
// the deadline of ctx is too; or the cancelling of ctx.
func (s *S3) Fetch(ctx context.Context, bucket, key string, limit int64) ([]byte, error) {
	if bucket == "" || key == "" {
		return nil, queue.Errorf(queue.CodeInvalidParameterValue,
			"an object in S3 has a bucket and a key: one of them is empty")
	}
	var broken error
	for range 3 { // while the contents break off
		out, err := s.api.GetObject(ctx, &s3.GetObjectInput{Bucket: &bucket, Key: &key})
		if err != nil {
			return nil, s.explain(ctx, bucket, key, err)
		}
		contents, err := readObject(out, limit)
		switch {
		case errors.Is(err, errObjectTooLarge):
			return nil, queue.Errorf(codeObjectTooLarge, "object %q in bucket %s is larger than the %d bytes allowed", key,
				bucket, limit)
		case err == nil:
			return contents, nil
		}
		if broken = err; ctx.Err() != nil {
			break
		}
	}
	return nil, s.explain(ctx, bucket, key, broken)
}

// errObjectTooLarge: an object is larger than the limit.
var errObjectTooLarge = errors.New("larger than the limit")

// readObject reads an object of at most limit bytes.
func readObject(out *s3.GetObjectOutput, limit int64) ([]byte, error) {
	defer out.Body.Close()
	if sdk.ToInt64(out.ContentLength) > limit {
		return nil, errObjectTooLarge
	}
	contents, err := io.ReadAll(io.LimitReader(out.Body, limit+1))
	if err == nil && int64(len(contents)) > limit {
		err = errObjectTooLarge
	}
	return contents, err
}

func (s *S3) explain(ctx context.Context, bucket, key string, err error) error {
	doing := fmt.Sprintf("fetching object %q from bucket %s", key, bucket)
	return s.service.explain(ctx, doing, err, func(refused *refusal) (code, message string) {
		code = objectCode(refused)
		switch {
		case refused.shape == "NoSuchBucket":
			message = fmt.Sprintf("bucket %s does not exist at %s", bucket, s.host)
		case code == queue.CodeResourceNotFound:
			message = fmt.Sprintf("object %q does not exist in bucket %s", key, bucket)
		case code == queue.CodeAccessDenied:
			message = fmt.Sprintf("S3 refused access: %s; allow these credentials s3:GetObject on the object "+
				"(without s3:ListBucket an object that does not exist looks the same)", refused)
		case refused.status/100 == 3, refused.shape == "AuthorizationHeaderMalformed":
			message = fmt.Sprintf("bucket %s is in another region than %s: set the region of the bucket", bucket, s.host)
		case !refused.foreign():
			message = fmt.Sprintf("%s refused s3:GetObject: %s", s.host, refused)
		}
		return code, message
	})
}

// objectCode names the kinds of refusal that S3 has and SQS has not.
func objectCode(refused *refusal) string {
	switch refused.shape {
	case "NoSuchKey", "NoSuchBucket", "NotFound", "NoSuchVersion":
		return queue.CodeResourceNotFound
	case "InvalidObjectState", "AllAccessDisabled", "AccountProblem":
		return queue.CodeAccessDenied
	case "PermanentRedirect", "TemporaryRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException":
		return queue.CodeInvalidParameterValue
	case "InternalError", "OperationAborted", "RequestTimeout":
		return queue.CodeUnreachable
	}
	if refused.status == http.StatusNotFound {
		return queue.CodeResourceNotFound
	}
	return refused.queueCode()
}
