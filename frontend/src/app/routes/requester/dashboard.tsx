export { RequesterDashboardScreen as Component } from "@/features/my-requests/components/dashboard-screen";
