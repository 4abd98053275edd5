// Requests whose answers take each other's place: an older answer does not replace a newer one.

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
