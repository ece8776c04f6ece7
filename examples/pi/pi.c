/* Estimates pi: every rank throws darts, and rank 0 gets the sum of the hits. */

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* xorshift64*: the same darts on every machine, which rand() does not promise. */
static double next(uint64_t *state) {
  *state ^= *state >> 12;
  *state ^= *state << 25;
  *state ^= *state >> 27;
  return (double)((*state * UINT64_C(2685821657736338717)) >> 11) / 9007199254740992.0;
}

int main(int argc, char **argv) {
  int rank, size, wrong = 0;
  char host[256];
  long throws = argc > 1 ? atol(argv[1]) : 10000000;
  long hits = 0, total = 0;

  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  gethostname(host, sizeof host);
  printf("rank %d of %d on %s\n", rank, size, host);
  fflush(stdout);

  double started = MPI_Wtime();
  uint64_t state = UINT64_C(88172645463325252) * (uint64_t)(rank + 1);
  for (long i = 0; i < throws; i++) {
    double x = next(&state), y = next(&state);
    hits += x * x + y * y <= 1;
  }
  MPI_Reduce(&hits, &total, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);

  if (rank == 0) {
    double pi = 4.0 * (double)total / ((double)throws * size);
    printf("pi is about %.4f (%ld throws, %.2f s)\n", pi, throws * size, MPI_Wtime() - started);
    wrong = pi < 3.12 || pi > 3.16;
    if (wrong) fprintf(stderr, "that is not pi\n");
  }
  MPI_Finalize();
  return wrong;
}
