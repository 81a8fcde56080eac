// Package realeve proves the gateway binary against the real eve server from npm.
//
// The suite has the build tag realeve and is run by `make test-real`, which installs the server first; README.md says
// how. It starts an eve server and the gateway as processes of their own, gives the scripted agent something to do,
// and compares what gRPC clients received with what Eve's own HTTP stream says, read by a reader that shares no code
// with the gateway: nothing lost, nothing twice, every byte the same.
package realeve
