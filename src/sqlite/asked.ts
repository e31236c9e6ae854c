/*
 * A service as somebody else's thread has it: the same methods, answering with promises.
 */

export type Asked<Service> = {
  [Method in keyof Service]: Service[Method] extends (...args: infer Arguments) => infer Result
    ? (...args: Arguments) => Promise<Result>
    : never
}
