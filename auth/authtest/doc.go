// Package authtest gives tests what authentication needs around it: an OpenID Connect issuer and a certificate
// authority, both real but for their size. Nothing of it belongs into a program.
package authtest
