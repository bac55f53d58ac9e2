package aws

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go/auth"
	"github.com/aws/smithy-go/encoding/httpbinding"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"tendril/queue"
)

const codeObjectTooLarge = "ObjectTooLarge"

// S3 fetches, stores and deletes objects. It is safe for concurrent use. It bypasses the SDK's client, which would add
// all 112 operations to the binary (decision 0066).
type S3 struct {
	service     service
	credentials sdk.CredentialsProvider
	signer      *v4.Signer
	retries     retries
	place       s3.EndpointParameters // without the bucket
}

// Close closes idle connections.
func (s *S3) Close() { s.service.close() }

// OpenS3 creates a client from the AWS configuration.
func OpenS3(ctx context.Context, opts *Options) (*S3, error) {
	cfg, service, err := loadWithRegion(ctx, opts, "S3", "the S3 client")
	if err != nil {
		return nil, err
	}

	service.terse = true
	base := endpointOf(ctx, &cfg, "S3")
	common := sqs.NewFromConfig(cfg).Options()
	fips, dual := common.EndpointOptions.UseFIPSEndpoint, common.EndpointOptions.UseDualStackEndpoint
	return &S3{
		service:     service,
		credentials: common.Credentials,
		signer:      v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true }),
		retries:     retries{retryer: retryerV2(common.Retryer)},
		place: s3.EndpointParameters{
			Region: &cfg.Region, Endpoint: base, ForcePathStyle: sdk.Bool(base != nil),
			UseFIPS:      sdk.Bool(fips == sdk.FIPSEndpointStateEnabled),
			UseDualStack: sdk.Bool(dual == sdk.DualStackEndpointStateEnabled),
			// S3 Express also accepts ordinary signatures; its sessions would require the SDK's client.
			DisableS3ExpressSessionAuth: sdk.Bool(true),
		},
	}, nil
}

// Fetch returns an object of at most limit bytes, and verifies its checksum if it has one. It retries, even after an
// incomplete body. It needs s3:GetObject.
//
// Error codes include queue.CodeResourceNotFound, queue.CodeAccessDenied, ObjectTooLarge and
// queue.CodeRequestThrottled. queue.CodeUnreachable means that a retry may succeed; it includes ctx's deadline.
func (s *S3) Fetch(ctx context.Context, bucket, key string, limit int64) ([]byte, error) {
	if bucket == "" || key == "" {
		return nil, queue.Errorf(queue.CodeInvalidParameterValue,
			"the bucket or the key of the object is empty")
	}

	call := objectCall{operation: getObject, bucket: bucket, key: key}
	var contents []byte
	err := s.download(ctx, &call, func(resp *http.Response) (err error) {
		contents, err = call.readBody(resp, limit)
		return err
	})
	if err != nil {
		return nil, err
	}
	return contents, nil
}

// Get writes an object to w, and resumes after an incomplete body. The caller must verify the contents. It needs
// s3:GetObject. It returns errors of w, and the same errors as [S3.Fetch].
func (s *S3) Get(ctx context.Context, bucket, key string, w io.Writer) error {
	call := objectCall{operation: getObject, bucket: bucket, key: key}
	to := &destination{Writer: w}
	err := s.download(ctx, &call, func(resp *http.Response) error {
		n, err := copyObject(to, resp, call.from)
		call.from += n
		if to.err != nil {
			return nil // another download would not help
		}
		return err
	})
	return cmp.Or(to.err, err)
}

const maxDownloads = 3

// download makes up to three calls until receive succeeds or returns a [queue.Error].
func (s *S3) download(ctx context.Context, call *objectCall, receive func(*http.Response) error) error {
	for tried := 1; ; tried++ {
		resp, err := s.send(ctx, call)
		if err != nil {
			return s.explain(ctx, call, err)
		}

		err = receive(resp)
		resp.Body.Close()
		switch {
		case err == nil || errors.As(err, new(*queue.Error)):
			return err
		case tried == maxDownloads || ctx.Err() != nil:
			return s.explain(ctx, call, err)
		}
	}
}

type destination struct {
	io.Writer
	err error
}

func (d *destination) Write(p []byte) (n int, err error) {
	n, d.err = d.Writer.Write(p)
	return n, d.err
}

// copyObject skips the first from bytes if the server ignored the requested range.
func copyObject(w io.Writer, resp *http.Response, from int64) (int64, error) {
	if resp.StatusCode != http.StatusPartialContent {
		if _, err := io.CopyN(io.Discard, resp.Body, from); err != nil {
			return 0, err
		}
	}
	return io.Copy(w, resp.Body)
}

// Put stores an object of size bytes. S3 verifies the digest. It needs s3:PutObject.
func (s *S3) Put(ctx context.Context, bucket, key string, contents io.ReaderAt, size int64) error {
	sum := sha256.New()
	if _, err := io.Copy(sum, io.NewSectionReader(contents, 0, size)); err != nil {
		return err
	}
	return s.sendOnly(ctx, &objectCall{operation: putObject, bucket: bucket, key: key, body: contents, size: size,
		digest: hex.EncodeToString(sum.Sum(nil))})
}

// Delete deletes an object, if it exists. It needs s3:DeleteObject.
func (s *S3) Delete(ctx context.Context, bucket, key string) error {
	return s.sendOnly(ctx, &objectCall{operation: deleteObject, bucket: bucket, key: key})
}

// CheckBucket fails if the bucket does not exist, is in another region, or denies access. It needs s3:ListBucket.
func (s *S3) CheckBucket(ctx context.Context, bucket string) error {
	return s.sendOnly(ctx, &objectCall{operation: headBucket, bucket: bucket})
}

func (s *S3) sendOnly(ctx context.Context, call *objectCall) error {
	resp, err := s.send(ctx, call)
	if err == nil {
		resp.Body.Close()
	}
	return s.explain(ctx, call, err)
}

// objectOperation's text is a format for the key and the bucket.
type objectOperation struct{ name, method, text string }

var (
	getObject    = objectOperation{"GetObject", http.MethodGet, "fetching object %q from bucket %s"}
	putObject    = objectOperation{"PutObject", http.MethodPut, "storing object %q in bucket %s"}
	deleteObject = objectOperation{"DeleteObject", http.MethodDelete, "deleting object %q from bucket %s"}
	headBucket   = objectOperation{"HeadBucket", http.MethodHead, "checking bucket %[2]s"}
)

type objectCall struct {
	operation   objectOperation
	bucket, key string
	from        int64       // first byte of a download
	body        io.ReaderAt // may be nil
	size        int64
	digest      string // SHA-256 in hexadecimal; "" for an empty body
}

func (c *objectCall) permission() string {
	return "s3:" + cmp.Or(callActions["s3:"+c.operation.name], c.operation.name)
}

func (c *objectCall) String() string { return fmt.Sprintf(c.operation.text, c.key, c.bucket) }

func (s *S3) send(ctx context.Context, call *objectCall) (resp *http.Response, err error) {
	err = s.retries.do(ctx, false, func(offset time.Duration) error {
		req, err := s.request(ctx, call, time.Now().Add(offset))
		if err != nil {
			return err
		}
		if resp, err = s.service.exchanger.transport.RoundTrip(req); err != nil {
			return undelivered(ctx, err)
		}
		if resp.StatusCode/100 == 2 {
			return nil
		}
		defer resp.Body.Close()
		return objectRefusal(resp)
	})
	return resp, err
}

const emptyDigest = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

func (s *S3) request(ctx context.Context, call *objectCall, at time.Time) (*http.Request, error) {
	credentials, err := retrieve(ctx, s.credentials)
	if err != nil {
		return nil, err
	}

	place := s.place
	place.Bucket = &call.bucket
	resolved, err := s3.NewDefaultEndpointResolverV2().ResolveEndpoint(ctx, place)
	if err != nil {
		return nil, queue.Errorf(queue.CodeInvalidParameterValue, "bucket %q: %w", call.bucket, err)
	}

	options, _ := auth.GetAuthOptions(&resolved.Properties)
	i := slices.IndexFunc(options, func(o *auth.Option) bool { return o.SchemeID == "sigv4" })
	if i < 0 {
		return nil, queue.Errorf(queue.CodeInvalidParameterValue,
			"%q is a multi-Region access point, which is not supported: use a bucket or an access point of one Region", call.bucket)
	}
	service, _ := smithyhttp.GetSigV4SigningName(&options[i].SignerProperties)
	region, _ := smithyhttp.GetSigV4SigningRegion(&options[i].SignerProperties)

	req := call.unsigned(resolved.URI).WithContext(ctx)
	err = s.signer.SignHTTP(ctx, credentials, req, cmp.Or(call.digest, emptyDigest), cmp.Or(service, "s3"),
		cmp.Or(region, sdk.ToString(place.Region)), at)
	if err != nil {
		return nil, fmt.Errorf("signing %s: %w", call.operation.name, err)
	}
	return req, nil
}

func (c *objectCall) unsigned(where url.URL) *http.Request {
	where.RawPath = strings.TrimSuffix(where.EscapedPath(), "/") + "/" + httpbinding.EscapePath(c.key, false)
	where.Path = strings.TrimSuffix(where.Path, "/") + "/" + c.key
	req := &http.Request{
		Method: c.operation.method, URL: &where, Host: where.Host, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"User-Agent": {"tendril"}, "X-Amz-Content-Sha256": {cmp.Or(c.digest, emptyDigest)}},
	}

	switch {
	case c.body != nil:
		req.Body = io.NopCloser(io.NewSectionReader(c.body, 0, c.size))
		req.ContentLength = c.size
		req.Header.Set("Expect", "100-continue") // a refusal arrives before the contents are sent
	case c.from > 0:
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", c.from))
	case c.operation == getObject:
		req.Header.Set("X-Amz-Checksum-Mode", "ENABLED")
	}
	return req
}

func objectRefusal(resp *http.Response) error {
	var words struct{ Code, Message string }
	// The body may not be XML, such as a proxy's.
	_ = xml.NewDecoder(io.LimitReader(resp.Body, 64<<10)).Decode(&words)
	return refusalOf(resp, words.Code, words.Message)
}

func (c *objectCall) readBody(resp *http.Response, limit int64) ([]byte, error) {
	tooLarge := queue.Errorf(codeObjectTooLarge, "object %q in bucket %s is larger than the %d bytes allowed", c.key,
		c.bucket, limit)
	if resp.ContentLength > limit {
		return nil, tooLarge
	}

	contents, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	switch {
	case err != nil:
		return nil, err
	case int64(len(contents)) > limit:
		return nil, tooLarge
	}
	return contents, verifyChecksum(resp.Header, contents)
}

func (s *S3) explain(ctx context.Context, call *objectCall, err error) error {
	return s.service.explain(ctx, call.String(), err, func(refused *refusal) (code, message string) {
		code = objectCode(refused)
		switch {
		case refused.shape == "NoSuchBucket", call.key == "" && code == queue.CodeResourceNotFound:
			message = fmt.Sprintf("bucket %s does not exist at %s", call.bucket, s.service.host)
		case code == queue.CodeResourceNotFound:
			message = fmt.Sprintf("object %q does not exist in bucket %s", call.key, call.bucket)
		case code == queue.CodeAccessDenied:
			message = fmt.Sprintf("S3 denied access: %s; allow these credentials %s", refused, call.advice())
		case refused.status/100 == 3, refused.shape == "AuthorizationHeaderMalformed":
			message = fmt.Sprintf("bucket %s is not in the region of %s: set the bucket's region", call.bucket, s.service.host)
		case !refused.isForeign():
			message = fmt.Sprintf("%s rejected %s: %s", s.service.host, call.permission(), refused)
		}
		return code, message
	})
}

func (c *objectCall) advice() string {
	switch {
	case c.key == "":
		return c.permission() + " on the bucket"
	case c.operation == getObject:
		return c.permission() + " on the object (without s3:ListBucket a missing object looks the same)"
	}
	return c.permission() + " on the object"
}

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

	switch {
	case refused.status == http.StatusNotFound:
		return queue.CodeResourceNotFound
	case refused.status/100 == 3:
		return queue.CodeInvalidParameterValue
	}
	return refused.queueCode()
}
