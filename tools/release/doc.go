// Command release builds a release of tendril from a tag, without Docker:
//
//	go run -C tools ./release                        from the tag of this commit, into dist
//	go run -C tools ./release -snapshot -out /tmp/d  from this commit, for a trial
//
// # Steps
//
//	version   tag and time of the commit; fails if the tree has changes
//	build     a static binary for Linux and macOS on amd64 and arm64
//	extras    completions and man pages, written by the binary of this machine
//	archives  tar.gz                              archive.go
//	packages  deb and rpm for Linux, by nfpm      packages.go
//	image     OCI layout and its archive          image.go
//	sbom      bill of materials (CycloneDX)       sbom.go
//	sums      SHA256SUMS of every file            sums.go
//
// Builds are reproducible with the same version of Go: times are the commit's, lists are sorted, owners are root.
package main
