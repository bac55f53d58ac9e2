package aws

import (
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

// CodeObjectTooLarge: the object in S3 is larger than the caller takes.
const CodeObjectTooLarge = "ObjectTooLarge"

// S3 fetches objects of Amazon S3, or of a server that speaks its protocol. All
// methods are safe for concurrent use.
type S3 struct {
	api       *s3.Client
	transport *http.Transport
	host      string
}

// S3Options configure [OpenS3]. A nil *S3Options is valid. As with SQS,
// credentials come from where every AWS tool takes them.
type S3Options struct {
	// Region is where the buckets are; "" means what the environment or the
	// profile says.
	Region string
	// Profile names a profile of the shared AWS configuration files; "" means
	// AWS_PROFILE, else "default".
	Profile string
	// Endpoint is the URL of a server that speaks the S3 protocol; "" means
	// AWS_ENDPOINT_URL_S3 and AWS_ENDPOINT_URL, else Amazon's own. Where one is set,
	// the bucket is named in the path, not in the host name.
	Endpoint string
	// Connections is how many idle connections are kept for the next call. 0 means
	// 64.
	Connections int
	// Log takes what the SDK logs; nil drops it.
	Log LogFunc
}

// fetchTries is how often an object is asked for in all whose contents broke off.
const fetchTries = 3

// OpenS3 reads the AWS configuration. It calls nobody. The error names the
// variable or the file at fault.
func OpenS3(ctx context.Context, opts *S3Options) (*S3, error) {
	if opts == nil {
		opts = &S3Options{}
	}
	cfg, err := loadConfig(ctx, opts.Region, opts.Profile, opts.Log)
	if err != nil {
		return nil, err
	}
	connections := opts.Connections
	if connections <= 0 {
		connections = 64
	}
	transport := newTransport(cfg.HTTPClient, connections)
	api := s3.NewFromConfig(cfg, func(o *s3.Options) {
		o.HTTPClient = &http.Client{Transport: transport, CheckRedirect: keepRedirect}
		o.Logger = logging.Nop{} // each error is returned
		chooseEndpoint(opts.Endpoint, &o.BaseEndpoint, &o.Region)
		o.UsePathStyle = o.BaseEndpoint != nil
	})
	o := api.Options()
	if o.Region == "" {
		return nil, &queue.Error{Code: queue.CodeInvalidParameterValue,
			Message: "no AWS region for the payloads in S3: set AWS_REGION, or a region in the profile"}
	}
	s := &S3{api: api, transport: transport, host: "S3 in " + o.Region}
	if o.BaseEndpoint != nil {
		s.host = *o.BaseEndpoint
	}
	return s, nil
}

// Close drops the idle connections. Calls under way end as they would.
func (s *S3) Close() { s.transport.CloseIdleConnections() }

// Fetch returns the contents of an object of at most limit bytes, checked against
// their checksum where S3 has one. It is repeated as the SDK's rules say, also when
// the contents break off. It needs s3:GetObject.
//
// The error is a [*queue.Error]: queue.CodeResourceNotFound when there is no such
// bucket or object, queue.CodeAccessDenied, [CodeObjectTooLarge],
// queue.CodeRequestThrottled, or queue.CodeUnreachable when it may work later, which
// the deadline of ctx is too; or the cancelling of ctx.
func (s *S3) Fetch(ctx context.Context, bucket, key string, limit int64) ([]byte, error) {
	if bucket == "" || key == "" {
		return nil, &queue.Error{Code: queue.CodeInvalidParameterValue,
			Message: "an object in S3 has a bucket and a key: one of them is empty"}
	}
	var broken error
	for range fetchTries {
		out, err := s.api.GetObject(ctx, &s3.GetObjectInput{Bucket: &bucket, Key: &key})
		if err != nil {
			return nil, s.explain(ctx, bucket, key, err)
		}
		contents, err := readObject(out, limit)
		switch {
		case errors.Is(err, errObjectTooLarge):
			return nil, &queue.Error{Code: CodeObjectTooLarge, Message: fmt.Sprintf(
				"object %q in bucket %s is larger than the %d bytes allowed", key, bucket, limit)}
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

// explain turns any error of a call into a [*queue.Error] that says which object
// and what to do. The cancelling of the caller's own context stays what it is.
func (s *S3) explain(ctx context.Context, bucket, key string, err error) error {
	refused := answer(err)
	if cause := ctx.Err(); errors.Is(cause, context.Canceled) && refused == nil {
		return cause
	}
	if refused == nil || refused.status/100 == 2 {
		why := firstLine(transportCause(err).Error())
		if ctx.Err() != nil {
			why = "it took too long"
		}
		return &queue.Error{Code: queue.CodeUnreachable, Err: err, Message: fmt.Sprintf(
			"fetching object %q from bucket %s: %s gave no whole answer: %s; check the network, the region and "+
				"AWS_ENDPOINT_URL_S3",
			key, bucket, s.host, why)}
	}
	code, message := objectCode(refused), refused.Error()
	switch {
	case refused.shape == "NoSuchBucket":
		message = fmt.Sprintf("bucket %s does not exist at %s", bucket, s.host)
	case code == queue.CodeResourceNotFound:
		message = fmt.Sprintf("object %q does not exist in bucket %s", key, bucket)
	case code == queue.CodeAccessDenied:
		message = fmt.Sprintf("S3 refused access to object %q in bucket %s: %s; allow these credentials s3:GetObject on it "+
			"(without s3:ListBucket an object that does not exist looks the same)", key, bucket, message)
	case refused.status/100 == 3, refused.shape == "AuthorizationHeaderMalformed":
		message = fmt.Sprintf("bucket %s is in another region than %s: set the region of the bucket", bucket, s.host)
	case refused.foreign():
		message = fmt.Sprintf("fetching object %q from bucket %s: %s", key, bucket,
			refused.foreignAnswer(s.host, "S3", "AWS_ENDPOINT_URL_S3"))
	default:
		message = fmt.Sprintf("fetching object %q from bucket %s: %s refused s3:GetObject: %s", key, bucket, s.host, message)
	}
	return &queue.Error{Code: code, Message: message, Err: refused}
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
	return refused.code()
}
