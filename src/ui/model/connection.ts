/** An open WebSocket connection or gRPC stream, as the admin API and the account endpoints list it. */
export type ConnectionLine = {
  readonly id: string
  readonly interface: string
  readonly since: string
  readonly age_seconds: number
  readonly remote_address: string
  readonly subscriptions: number
  readonly bytes_out: number
}
