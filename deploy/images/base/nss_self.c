/* An NSS module that gives a name to a process whose uid has no line in /etc/passwd.
 *
 * Clusters run pods as uids that no image knows, and ssh and sshd reject those: "No user exists for uid 12345".
 * This module comes after /etc/passwd in nsswitch.conf and has one answer: the calling process is "user12345", with
 * the home directory /home/mpiuser.
 *
 * Why not write a passwd file at start (nss-extrausers, or a writable /etc/passwd)? That needs an entry point, which a
 * pod's command replaces, and a writable file system, and anyone who can write it can invent users for setuid
 * programs. This module writes nothing, and gives setuid programs no answer.
 */

#include <errno.h>
#include <nss.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define HOME "/home/mpiuser"
#define SHELL "/bin/sh"

static char *append(char **end, size_t *left, const char *text) {
  size_t length = strlen(text) + 1;
  if (length > *left) return NULL;
  char *start = memcpy(*end, text, length);
  *end += length;
  *left -= length;
  return start;
}

/* Root is always in /etc/passwd. If the uids differ, this is a setuid program. */
static int is_plain_user(void) { return geteuid() != 0 && getuid() == geteuid() && getgid() == getegid(); }

static void own_name(char *name, size_t size) { snprintf(name, size, "user%u", (unsigned)geteuid()); }

static enum nss_status answer(struct passwd *entry, char *buffer, size_t size, int *error) {
  char name[32];
  own_name(name, sizeof name);
  entry->pw_uid = geteuid();
  entry->pw_gid = getegid();
  if ((entry->pw_name = append(&buffer, &size, name)) && (entry->pw_passwd = append(&buffer, &size, "*")) &&
      (entry->pw_gecos = append(&buffer, &size, "")) && (entry->pw_dir = append(&buffer, &size, HOME)) &&
      (entry->pw_shell = append(&buffer, &size, SHELL)))
    return NSS_STATUS_SUCCESS;
  *error = ERANGE; /* the caller retries with a larger buffer */
  return NSS_STATUS_TRYAGAIN;
}

enum nss_status _nss_self_getpwuid_r(uid_t uid, struct passwd *entry, char *buffer, size_t size, int *error) {
  if (!is_plain_user() || uid != geteuid()) return NSS_STATUS_NOTFOUND;
  return answer(entry, buffer, size, error);
}

enum nss_status _nss_self_getpwnam_r(const char *name, struct passwd *entry, char *buffer, size_t size, int *error) {
  char own[32];
  own_name(own, sizeof own);
  if (!is_plain_user() || strcmp(name, own) != 0) return NSS_STATUS_NOTFOUND;
  return answer(entry, buffer, size, error);
}
