// Command release builds what a release of tendril consists of, from a tag and without Docker:
//
//	go run -C tools ./release                        from the tag of this commit, into dist
//	go run -C tools ./release -snapshot -out /tmp/d  from this commit, for a trial
//
// The folder then has, for Linux and macOS on amd64 and arm64, an archive with the static binary, completions and man
// pages; a deb and an rpm for each Linux; one OCI image of both Linuxes as an archive of its layout; a bill of
// materials (CycloneDX); and SHA256SUMS. The version stands in the binary.
//
// # Steps
//
//	version   the tag and the time of its commit; a tree with changes is refused
//	build     one binary for each target, without paths and times of this machine
//	extras    completions and man pages, written by the binary of this machine
//	archives  tar.gz                              archive.go
//	packages  deb and rpm, by nfpm                packages.go
//	image     the layout and its archive          image.go
//	sbom      from what the binary says of itself sbom.go
//	sums      of every file                       sums.go
//
// The same commit, built by the same version of Go, gives the same bytes: every time is that of the commit, every list
// is sorted, every owner is root.
package main
