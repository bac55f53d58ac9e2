// Package machine applies the sections of a bundle that change the machine.
//
// For each configuration file, [Plan] orders the sections as cfn-init does on Elastic Beanstalk: packages, groups,
// users, sources, files, commands, services.
//
// # Invariants
//
//   - A step changes nothing if the machine is already in the desired state. Only commands run each time, unless their
//     test fails.
//   - A file is replaced atomically. The section files keeps the previous one with the suffix .bak.
//   - An archive is never unpacked outside its folder.
//   - Sources use TLS or come from this machine, and their size is limited.
//
// A failed deployment leaves the changes made so far. The caller must check whether it may change the machine and runs
// as root.
package machine
