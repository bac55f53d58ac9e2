#!/bin/sh
# Builds the command as releases have it: build.sh VERSION OUTPUT, in the root of the tree. GOOS and GOARCH may be set.
# Without cgo, the binary is static. Paths, the build ID and the VCS state would differ between machines. The services'
# packages of the AWS SDK are not inlined: 1 MB less. SQS, on the path of messages, is.
CGO_ENABLED=0 exec go build -trimpath -buildvcs=false \
  -gcflags 'github.com/aws/aws-sdk-go-v2/service/...=-l' -gcflags 'github.com/aws/aws-sdk-go-v2/service/sqs/...=' \
  -ldflags "-s -w -buildid= -X main.version=$1" -o "$2" ./cmd/tendril
