type int = number
declare const tickets: {
// Files a ticket. It starts in state `open`.
create_ticket(a: {
 project: string // /^[A-Z]{2,8}$/; Key of the project, in capitals.
 title: string // len 1..200
 priority?: "low"|"normal"|"high" // ="normal"; How soon somebody should look.
 labels?: string[] // items <=10; unique
 assignee?: string|null // Login of a person; nobody when null.
}): Promise<{
 id: int // Number within the project.
 url: string // uri
}>
// [deprecated: close it instead] [destructive] Deletes a ticket for good.
delete_ticket(a: { id: int }): Promise<any>
// [read-only] (list-tickets) Lists tickets, newest first. Results are paged: pass `cursor` to go on.
list_tickets(a?: {
 project?: string // /^[A-Z]{2,8}$/
 limit?: int // =20; 1..100
 cursor?: string
}): Promise<{ id: int; title: string }[]>
ping(): Promise<any>
}
