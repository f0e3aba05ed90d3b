/** The known word that differs by a slip of the fingers or by its spelling (`kill_after`), if there is one. */
export function nearest(key: string, known: readonly string[]): string | null {
  const plain = (text: string) => text.toLowerCase().replace(/[-_\s]/g, '');
  // A long key is no slip, and not worth the time.
  if (key.length > 40) return null;
  const distances = known.map((candidate) => ({
    candidate,
    distance: editDistance(plain(key), plain(candidate)),
  }));
  distances.sort((a, b) => a.distance - b.distance);
  const [best] = distances;
  const bound = Math.min(2, Math.floor(key.length / 2));
  return best !== undefined && best.distance <= bound ? best.candidate : null;
}

/** Levenshtein's, with two neighbours swapped as one edit. */
function editDistance(from: string, to: string): number {
  let older: number[] = [];
  let previous = Array.from({ length: to.length + 1 }, (_, column) => column);
  for (let row = 1; row <= from.length; row += 1) {
    const current = [row];
    for (let column = 1; column <= to.length; column += 1) {
      const same = from[row - 1] === to[column - 1];
      const swapped = from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1];
      current.push(
        Math.min(
          (previous[column] ?? 0) + 1,
          (current[column - 1] ?? 0) + 1,
          (previous[column - 1] ?? 0) + (same ? 0 : 1),
          swapped ? (older[column - 2] ?? 0) + 1 : Number.POSITIVE_INFINITY,
        ),
      );
    }
    older = previous;
    previous = current;
  }
  return previous[to.length] ?? 0;
}
