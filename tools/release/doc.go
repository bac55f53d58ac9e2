// Command release builds a release of tendril from a tag, without Docker:
//
//	go run -C tools ./release                        from the tag of this commit, into dist
//	go run -C tools ./release -snapshot -out /tmp/d  from this commit, for a trial
//
// A release has static binaries for Linux and macOS on amd64 and arm64, in archives with completions and man pages,
// deb and rpm packages for Linux, an OCI image, a CycloneDX bill of materials, and SHA256SUMS. Without -snapshot, the
// command fails if the tree has changes or the commit has no tag.
//
// Builds are reproducible with the same version of Go: times are the commit's, lists are sorted, owners are root.
package main
