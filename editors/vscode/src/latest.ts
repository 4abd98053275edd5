// Requests of which only the newest answer is shown: an older answer never replaces a newer one.

export class Latest {
  /** The number of requests so far, and the last one whose answer is shown. */
  private asked = 0
  private shown = 0

  /** Counts a request. */
  begin(): { isLate: () => boolean; show: () => void } {
    const mine = ++this.asked
    return { isLate: () => mine < this.shown, show: () => (this.shown = mine) }
  }
}
