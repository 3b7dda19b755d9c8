export { MyRequestsScreen as Component } from "@/features/my-requests/components/list-screen";
