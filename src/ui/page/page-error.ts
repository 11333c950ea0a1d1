/** An error of the server, or of the way there, as a page shows it. */
export type PageError = {
  readonly message: string
  /** What the user can do about it. */
  readonly fix?: string
  readonly requestId?: string
}
