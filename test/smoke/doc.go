// Package smoke uses the built product as someone who has just downloaded it: the demo, and grpcurl as the only client.
//
// The test has the build tag smoke and is run by `make smoke`, which builds both programs into bin/ first.
package smoke
