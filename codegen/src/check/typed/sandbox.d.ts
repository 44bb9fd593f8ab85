// Globals of every script, besides those of the language and of the servers.
declare var input: any
declare var console: { [method: string]: (...values: any[]) => void }
declare class ToolError extends Error {
  constructor(message?: string, fields?: object)
  code: string
  tool: string
  retryable: boolean
  content: any[]
  structuredContent?: any
}
declare function setTimeout(callback: (...values: any[]) => void, ms?: number, ...values: any[]): number
declare function setInterval(callback: (...values: any[]) => void, ms?: number, ...values: any[]): number
declare function clearTimeout(id?: number): void
declare function clearInterval(id?: number): void
declare function queueMicrotask(callback: () => void): void
declare function structuredClone<T>(value: T): T
declare function atob(text: string): string
declare function btoa(text: string): string
declare var performance: { now(): number, timeOrigin: number }
declare var crypto: { randomUUID(): string, getRandomValues<T>(array: T): T }
declare class TextEncoder { encode(text?: string): Uint8Array }
declare class TextDecoder {
  constructor(label?: string, options?: object)
  decode(bytes?: any, options?: object): string
}
declare var URL: any
type URL = any
declare var URLSearchParams: any
type URLSearchParams = any
interface ErrorConstructor { captureStackTrace(target: object, constructor?: Function): void }
