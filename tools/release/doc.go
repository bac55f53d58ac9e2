// Command release builds a release of tendril from a tag, without Docker:
//
//	go run -C tools ./release                        from the tag of this commit, into dist
//	go run -C tools ./release -snapshot -out /tmp/d  from this commit, for a trial
//
// The output has, for Linux and macOS on amd64 and arm64, an archive with the static binary, completions and man
// pages; a deb and an rpm per Linux target; an OCI image layout for both Linux targets; a bill of materials
// (CycloneDX); and SHA256SUMS.
//
// # Steps
//
//	version   tag and time of the commit; fails if the tree has changes
//	build     a binary per target, without paths and times of this machine
//	extras    completions and man pages, written by the binary of this machine
//	archives  tar.gz                              archive.go
//	packages  deb and rpm, by nfpm                packages.go
//	image     layout and its archive              image.go
//	sbom      from the binary's build information sbom.go
//	sums      of every file                       sums.go
//
// Builds are reproducible with the same version of Go: times are the commit's, lists are sorted, owners are root.
package main
