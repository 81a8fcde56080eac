package ingress

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/evegateway/evegateway/auth"
	"github.com/evegateway/evegateway/auth/internal/glob"
)

// Identities says which names in certificates count as callers. Nothing listed is nobody.
type Identities struct {
	// TrustDomains are the SPIFFE trust domains whose workloads are callers, such as mesh.example.org. Such a caller's
	// id is its whole SPIFFE id, its issuer spiffe:// and the trust domain.
	TrustDomains []string
	// DNSNames are patterns of DNS names that are callers, such as *.agents.example.org, where * stands for any
	// characters. They are looked at only where the certificate has no SPIFFE id. Such a caller's id is the first name
	// that matches, its issuer auth.IssuerX509.
	DNSNames []string
}

var domainPattern = regexp.MustCompile(`^[a-z0-9._-]{1,255}$`)

func (i *Identities) check() error {
	if len(i.TrustDomains) == 0 && len(i.DNSNames) == 0 {
		return errors.New("no trust domain and no DNS name is listed: nobody could call")
	}
	for _, d := range i.TrustDomains {
		if !domainPattern.MatchString(d) {
			return fmt.Errorf("%q is no trust domain: want lower-case letters, digits, '.', '-' and '_', without spiffe://", d)
		}
	}
	if slices.Contains(i.DNSNames, "") {
		return errors.New("an empty DNS name")
	}
	return nil
}

// spiffePattern is a SPIFFE id with a path, as its specification has it; that no part of the path is . or .. is left.
var spiffePattern = regexp.MustCompile(`^spiffe://([a-z0-9._-]{1,255})((?:/[A-Za-z0-9._-]+)+)$`)

const maxSPIFFE = 2048

// identify returns the id and issuer that the names of a certificate stand for. The error says what is wrong without
// quoting a name.
func (i *Identities) identify(uris, dns []string) (id, issuer string, err error) {
	if slices.ContainsFunc(uris, isSPIFFE) {
		if len(uris) > 1 {
			return "", "", errors.New("a SPIFFE id and another URI: it must be the only one")
		}
		m := spiffePattern.FindStringSubmatch(uris[0])
		if m == nil || len(uris[0]) > maxSPIFFE || slices.ContainsFunc(strings.Split(m[2], "/"), isDots) {
			return "", "", errors.New("a malformed SPIFFE id")
		}
		if !slices.Contains(i.TrustDomains, m[1]) {
			return "", "", errors.New("a SPIFFE id of a trust domain that is not listed")
		}
		return uris[0], "spiffe://" + m[1], nil
	}
	for _, name := range dns {
		name = strings.ToLower(name)
		if name != "" && !strings.Contains(name, "*") && glob.Any(i.DNSNames, name) {
			return name, auth.IssuerX509, nil
		}
	}
	return "", "", errors.New("no SPIFFE id and no DNS name that is listed")
}

func isSPIFFE(uri string) bool {
	return len(uri) >= 7 && strings.EqualFold(uri[:7], "spiffe:")
}

func isDots(part string) bool { return part == "." || part == ".." }
